// SPDX-License-Identifier: BSD-3-Clause
#include "boot/limits.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/resource.h>

namespace macadam::boot {
namespace {

std::string show(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

std::string remedy(int error) {
  rlimit limit{};
  switch (error) {
  case EMFILE:
    getrlimit(RLIMIT_NOFILE, &limit);
    return fmt::format(
        "; the limit of open files (nofile) is {} and more are needed: raise it with "
        "\"ulimit -n 4096\" (the hard limit is {})",
        show(limit.rlim_cur), show(limit.rlim_max));
  case ENFILE:
    return "; the machine has no more open files: raise them with \"sysctl fs.file-max=...\"";
  case EAGAIN:
    getrlimit(RLIMIT_NPROC, &limit);
    return fmt::format("; no more processes may be started: this user may have {} (nproc; raise it "
                       "with \"ulimit -u\"), and the control group as many as its pids.max says",
                       show(limit.rlim_cur));
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

std::string explain_failure(const char* doing, int error) {
  return fmt::format("{} failed: {}{}", doing, std::strerror(error), remedy(error));
}

} // namespace macadam::boot
