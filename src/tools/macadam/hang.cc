// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/hang.h"

#include "base/error.h"
#include "boot/hang/hang_report.h"
#include "boot/job_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace macadam::tools {
namespace {

namespace fs = std::filesystem;
using boot::JobMemory;

// Of a process; none if they are not shown to this user.
std::vector<fs::path> descriptors_of(int process) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", process), error))
    found.push_back(entry.path());
  return found;
}

std::vector<int> own_processes() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    int process = 0;
    struct stat about = {};
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec == std::errc{} &&
        stat(entry.path().c_str(), &about) == 0 && about.st_uid == geteuid())
      found.push_back(process);
  }
  return found;
}

// Whether a rank here is in MPI, the process itself if there is one.
bool has_rank(const JobMemory& memory, int process) {
  return std::ranges::any_of(memory.members(), [&](std::uint32_t rank) {
    const boot::RankRow& row = memory.row(static_cast<int>(rank));
    return row.state.load(std::memory_order_acquire) == boot::RankState::running &&
           (process == 0 ? kill(row.pid, 0) == 0 : row.pid == process);
  });
}

struct Found {
  std::vector<JobMemory> jobs;
  std::string unread; // a line for each of another version
};

// Each once, as all of its ranks have it, and those who have started them.
Found find_jobs(const HangQuestion& question) {
  const std::vector<int> processes =
      question.process != 0 ? std::vector{question.process} : own_processes();
  Found found;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const int process : processes) {
    for (const fs::path& path : descriptors_of(process)) {
      std::error_code error;
      const std::string target = fs::read_symlink(path, error);
      struct stat about = {};
      if (!target.starts_with(fmt::format("/memfd:{}", boot::job_memory_name)) ||
          stat(path.c_str(), &about) != 0 || !seen.emplace(about.st_dev, about.st_ino).second)
        continue;
      const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
      if (fd < 0) continue;
      try {
        JobMemory memory = boot::receive_memory(fd);
        if (has_rank(memory, question.process)) found.jobs.push_back(std::move(memory));
      } catch (const base::Error& of_another_version) {
        found.unread += fmt::format("macadam: the job of process {} cannot be asked: {}\n", process,
                                    of_another_version.text);
      }
    }
  }
  return found;
}

// Twice if ranks seem to wait in a circle.
std::string page_of(const JobMemory& memory) {
  std::vector<boot::RankStatus> earlier, now = boot::ask_ranks(memory);
  if (boot::shows_circle(now)) {
    earlier = std::move(now);
    std::this_thread::sleep_for(boot::look_interval);
    now = boot::ask_ranks(memory);
  }
  return boot::hang_report(fmt::format("host {}", memory.own_node().host.data()), now, earlier, "",
                           "macadam");
}

} // namespace

std::string hang(const HangQuestion& question) {
  const Found found = find_jobs(question);
  std::string pages = found.unread;
  for (const JobMemory& memory : found.jobs)
    pages += page_of(memory);
  if (pages.empty())
    throw std::runtime_error(
        question.process != 0
            ? fmt::format("process {} is no rank in MPI of a job that this user may look at",
                          question.process)
            : "no rank of this user's is in MPI on this machine, beside programs that were started "
              "alone");
  return pages;
}

} // namespace macadam::tools
