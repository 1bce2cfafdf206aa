// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/system.h"

#include <limits.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

// Copying between the private memory of two processes by the kernel (cross-memory attach).
namespace macadam::net::shm {

// Blocks of memory that one call of the kernel takes, on either side.
inline constexpr std::size_t most_blocks = IOV_MAX;

// What became of a copy: 0, or the errno of the refusal. ESRCH: the process is gone. EFAULT: the
// memory is not there. EPERM, ENOSYS and others: the system does not let us.
[[nodiscard]] int cross_copy(System& system, Direction direction, pid_t process, void* local,
                             std::uint64_t remote, std::size_t bytes);
// The same for up to most_blocks blocks on either side, which it changes.
[[nodiscard]] int cross_copy(System& system, Direction direction, pid_t process,
                             std::span<iovec> local, std::span<iovec> remote);

// Tries whether a word of another process can be read and has the value it should have (process ids
// of another namespace name the wrong process). Returns why not; empty if it works.
[[nodiscard]] std::string probe_cross_copy(System& system, pid_t process, std::uint64_t address,
                                           std::uint64_t value);

} // namespace macadam::net::shm
