// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace macadam::boot {

// Hardware threads that this process and its children may use: those in its affinity mask, fewer if
// a control group (a container's CPU limit) grants less time. At least 1.
unsigned usable_cores();

// Memory that this process may still take: what the machine has, less if a control group grants
// less.
struct FreeMemory {
  std::uint64_t bytes;
  std::string whose;  // who sets the bound: "the machine", or which control group
  std::string remedy; // of a bound that can be raised: ", or raise ...". Else empty
};
// `root` is where proc and sys are mounted; another one for tests.
FreeMemory free_memory(const std::string& root = "");

// Grows when the kernel ends a process because the memory of this process's control group, or of
// one above, was used up: the sum of what these tell. Of version 2 the groups above count the ends
// in those below, too. `root` as above.
std::uint64_t ends_for_want_of_memory(const std::string& root = "");

// A limit that a control group sets: that of this process, or one above.
struct GroupLimit {
  std::string file; // that says so: "/sys/fs/cgroup/.../memory.max"; empty if there is none
  std::uint64_t most = 0;
};
// The lowest of memory, in bytes. `root` as above.
GroupLimit memory_limit(const std::string& root = "");
// The one of processes that is reached.
GroupLimit reached_process_limit(const std::string& root = "");
// Processes of this user, threads counted too, as the limit nproc does.
std::uint64_t processes_of_user();

// The parent of a process; 0 if that cannot be seen.
pid_t parent_of(pid_t pid);

// The host's name as users know it.
std::string host_name();

} // namespace macadam::boot
