// SPDX-License-Identifier: BSD-3-Clause
#include "boot/machine.h"

#include "base/affinity.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fmt/format.h>
#include <memory>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

namespace macadam::boot {
namespace {

unsigned cores_in_mask() {
  const auto threads = static_cast<unsigned>(base::usable_threads().size());
  return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File open_file(const std::string& path) {
  return {std::fopen(path.c_str(), "re"), std::fclose};
}

// The limit of one control group in processors, or `otherwise` if it has none.
double group_limit(const std::string& folder, double otherwise) {
  const File file = open_file(folder + "/cpu.max");
  double quota = 0, period = 0;
  if (!file || std::fscanf(file.get(), "%lf %lf", &quota, &period) != 2 || period <= 0)
    return otherwise; // "max 100000" has no quota
  return std::min(otherwise, quota / period);
}

// The path of this process's group, "/a/b", on the line of /proc/self/cgroup that begins with a
// number and `kind`: ":" in version 2, else that of a controller. "" if there is none.
std::string own_group(const std::string& root, const std::string& kind) {
  const File file = open_file(root + "/proc/self/cgroup");
  char line[4096];
  while (file && std::fgets(line, sizeof line, file.get())) {
    line[std::strcspn(line, "\n")] = 0;
    const char* const of = std::strchr(line, ':');
    if (of != nullptr && std::string_view(of + 1).starts_with(kind + "/"))
      return of + 1 + kind.size();
  }
  return {};
}

// Calls visit(folder) for a group and every one above it up to the root: each may limit; in a
// container the root itself is the limited one.
template <class Visit>
void for_each_group(std::string group, Visit&& visit) {
  while (!group.empty()) {
    if (group == "/") group.clear();
    visit(group);
    const std::size_t slash = group.rfind('/');
    if (slash != std::string::npos) group.resize(std::max<std::size_t>(slash, 1));
  }
}

// The number behind `key` in a file of lines "key number", or of one number if `key` is empty;
// `otherwise` if it is not there.
std::uint64_t read_number(const std::string& path, const std::string& key,
                          std::uint64_t otherwise) {
  const File file = open_file(path);
  char line[256];
  while (file && std::fgets(line, sizeof line, file.get())) {
    unsigned long long number = 0;
    if (std::strncmp(line, key.c_str(), key.size()) != 0) continue;
    if (std::sscanf(line + key.size(), " %llu", &number) == 1) return number;
  }
  return otherwise;
}

// What tells of the memory of a control group: in version 2, and in version 1.
struct MemoryFiles {
  const char* kind; // see own_group()
  const char* folder;
  const char* limit;
  const char* used;
  const char* reclaimable; // of the pages of files that count as used
  const char* events;      // how often its processes were ended
};
constexpr std::array memory_files = {
    MemoryFiles{":", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file",
                "memory.events"},
    MemoryFiles{"memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control"},
};

} // namespace

unsigned usable_cores() {
  double cores = cores_in_mask();
  for_each_group(own_group("", ":"), [&](const std::string& group) {
    cores = group_limit("/sys/fs/cgroup" + group, cores);
  });
  return std::max(1U, static_cast<unsigned>(cores + 0.999));
}

FreeMemory free_memory(const std::string& root) {
  constexpr std::uint64_t none = UINT64_MAX;
  const std::string machine = root + "/proc/meminfo";
  const auto less = [](std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); };
  FreeMemory free{read_number(machine, "MemAvailable:", none >> 10) << 10, "the machine", ""};
  if (read_number(root + "/proc/sys/vm/overcommit_memory", "", 0) == 2) {
    const std::uint64_t bytes = less(read_number(machine, "CommitLimit:", none >> 10),
                                     read_number(machine, "Committed_AS:", 0))
                                << 10;
    if (bytes < free.bytes)
      free = {bytes, "the machine, which does not overcommit memory,",
              ", or raise /proc/sys/vm/overcommit_ratio"};
  }
  for (const MemoryFiles& files : memory_files) {
    for_each_group(own_group(root, files.kind), [&](const std::string& group) {
      const std::string folder = root + files.folder + group + "/";
      const std::uint64_t limit = read_number(folder + files.limit, "", none);
      if (limit == none) return;
      const std::uint64_t used = less(read_number(folder + files.used, "", 0),
                                      read_number(folder + "memory.stat", files.reclaimable, 0));
      if (less(limit, used) < free.bytes)
        free = {less(limit, used), fmt::format("the control group {}", group.empty() ? "/" : group),
                fmt::format(", or raise {} ({} MiB)", folder + files.limit, limit >> 20)};
    });
  }
  return free;
}

pid_t parent_of(pid_t pid) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      std::fopen(fmt::format("/proc/{}/stat", pid).c_str(), "re"), std::fclose);
  char line[512] = "";
  if (!file || !std::fgets(line, sizeof line, file.get())) return 0;
  const char* const name_end = std::strrchr(line, ')'); // "PID (name) state parent"
  int parent = 0;
  if (name_end == nullptr || std::sscanf(name_end + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

GroupLimit memory_limit(const std::string& root) {
  GroupLimit lowest;
  for (const MemoryFiles& files : memory_files)
    for_each_group(own_group(root, files.kind), [&](const std::string& group) {
      const std::string file = root + files.folder + group + "/" + files.limit;
      constexpr std::uint64_t none = std::uint64_t{1} << 60; // version 1 has a number for it
      const std::uint64_t most = read_number(file, "", none);
      if (most < (lowest.file.empty() ? none : lowest.most)) lowest = {file, most};
    });
  return lowest;
}

GroupLimit reached_process_limit(const std::string& root) {
  GroupLimit reached;
  for (const auto& [kind, folder] :
       {std::pair{":", "/sys/fs/cgroup"}, {"pids:", "/sys/fs/cgroup/pids"}})
    for_each_group(own_group(root, kind), [&](const std::string& group) {
      const std::string file = root + folder + group + "/pids.";
      const std::uint64_t most = read_number(file + "max", "", UINT64_MAX);
      if (read_number(file + "current", "", 0) >= most) reached = {file + "max", most};
    });
  return reached;
}

std::uint64_t processes_of_user() {
  std::uint64_t sum = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* const entry = processes ? readdir(processes.get()) : nullptr) {
    const std::string status = fmt::format("/proc/{}/status", entry->d_name);
    if (read_number(status, "Uid:", UINT64_MAX) == getuid())
      sum += read_number(status, "Threads:", 1);
  }
  return sum;
}

std::uint64_t ends_for_want_of_memory(const std::string& root) {
  std::uint64_t ends = 0;
  for (const MemoryFiles& files : memory_files)
    for_each_group(own_group(root, files.kind), [&](const std::string& group) {
      const std::string folder = root + files.folder + group;
      ends += read_number(folder + "/" + files.events, "oom_kill ", 0);
    });
  return ends;
}

} // namespace macadam::boot
