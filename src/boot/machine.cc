// SPDX-License-Identifier: BSD-3-Clause
#include "boot/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace macadam::boot {
namespace {

unsigned cores_in_mask() {
  // The kernel refuses a mask shorter than its own; 1 << 16 hardware threads are enough for long.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 16; cpus *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set.get()) == 0)
      return static_cast<unsigned>(CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

// The limit of one control group in processors, or `otherwise` if it has none.
double group_limit(const std::string& folder, double otherwise) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen((folder + "/cpu.max").c_str(), "re"),
                                                   std::fclose);
  double quota = 0, period = 0;
  if (!file || std::fscanf(file.get(), "%lf %lf", &quota, &period) != 2 || period <= 0)
    return otherwise; // "max 100000" has no quota
  return std::min(otherwise, quota / period);
}

// The path of this process's group (version 2), "/a/b"; "" if there is none.
std::string own_group() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/cgroup", "re"),
                                                   std::fclose);
  char line[4096];
  while (file && std::fgets(line, sizeof line, file.get())) {
    if (std::strncmp(line, "0::/", 4) == 0) {
      line[std::strcspn(line, "\n")] = 0;
      return line + 3;
    }
  }
  return {};
}

} // namespace

unsigned usable_cores() {
  double cores = cores_in_mask();
  // Every group up to the root may limit; in a container the root itself is the limited one.
  for (std::string group = own_group(); !group.empty();) {
    if (group == "/") group.clear();
    cores = group_limit("/sys/fs/cgroup" + group, cores);
    const std::size_t slash = group.rfind('/');
    if (slash != std::string::npos) group.resize(std::max<std::size_t>(slash, 1));
  }
  return std::max(1U, static_cast<unsigned>(cores + 0.999));
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

} // namespace macadam::boot
