// SPDX-License-Identifier: BSD-3-Clause
#include "boot/limits.h"

#include "boot/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/resource.h>

namespace macadam::boot {
namespace {

Needs needs;

std::string show(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

// `letter` and `name`: of ulimit and of docker.
std::string command_for(char letter, const char* name, std::uint64_t enough, const rlimit& limit) {
  return fmt::format(
      ": raise it with \"ulimit -{} {}\"{}", letter, enough,
      enough > limit.rlim_max
          ? fmt::format(" as root, as the hard limit is {} (docker run --ulimit {}={})",
                        show(limit.rlim_max), name, enough)
          : "");
}

std::string explain_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::uint64_t enough = needs.descriptors > limit.rlim_cur ? needs.descriptors : 4096;
  return fmt::format(
      "; the limit of open files (nofile) is {}, needed are {}{}", show(limit.rlim_cur),
      needs.descriptors > limit.rlim_cur ? std::to_string(needs.descriptors) : "more",
      command_for('n', "nofile", enough, limit));
}

// Which of the limits of processes it was cannot be seen from the error, but from who has reached
// what. Root is above nproc.
std::string explain_processes() {
  const std::string needed = needs.processes == 0
                                 ? "the job needs more"
                                 : fmt::format("the job needs {}", needs.processes);
  if (const GroupLimit group = reached_process_limit(); !group.file.empty())
    return fmt::format("; the control group may have {} processes, {}: raise it with \"echo {} "
                       ">{}\" (docker run --pids-limit)",
                       group.most, needed,
                       group.most + std::max<std::uint64_t>(needs.processes, 64), group.file);
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  const std::uint64_t own = processes_of_user();
  if (limit.rlim_cur != RLIM_INFINITY && own >= limit.rlim_cur)
    return fmt::format(
        "; this user may have {} processes (nproc) and has {}, {}{}", limit.rlim_cur, own, needed,
        command_for('u', "nproc", own + std::max<std::uint64_t>(needs.processes, 64), limit));
  return fmt::format("; the machine has no room for more processes, {}: end others, or raise them "
                     "with \"sysctl kernel.pid_max=... kernel.threads-max=...\"",
                     needed);
}

std::string remedy(int error) {
  switch (error) {
  case EMFILE:
    return explain_descriptors();
  case ENFILE:
    return "; the machine has no more open files: raise them with \"sysctl fs.file-max=...\"";
  case EAGAIN:
    return explain_processes();
  case ENOSYS:
  case EPERM:
  case EACCES:
    return "; the system call is forbidden here, maybe by the seccomp profile of a container, "
           "which must allow it (docker run --security-opt seccomp=unconfined)";
  default:
    return "";
  }
}

} // namespace

void set_needs(const Needs& of) {
  needs = of;
}

std::string explain_failure(const char* doing, int error) {
  return fmt::format("{} failed: {}{}", doing, std::strerror(error), remedy(error));
}

} // namespace macadam::boot
