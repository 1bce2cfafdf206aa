// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/bulk/copy.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace macadam::net::shm {

namespace {

// What is left of the blocks behind the first `bytes` bytes.
std::span<iovec> behind(std::span<iovec> blocks, std::size_t bytes) {
  while (!blocks.empty() && bytes >= blocks.front().iov_len) {
    bytes -= blocks.front().iov_len;
    blocks = blocks.subspan(1);
  }
  if (bytes > 0) {
    blocks.front().iov_base = static_cast<std::byte*>(blocks.front().iov_base) + bytes;
    blocks.front().iov_len -= bytes;
  }
  return blocks;
}

} // namespace

int cross_copy(System& system, Direction direction, pid_t process, std::span<iovec> local,
               std::span<iovec> remote) {
  // The kernel cuts a call at 2 GiB less a page, and a signal may cut it anywhere.
  while (!remote.empty()) {
    const ssize_t moved = system.copy(direction, process, local, remote);
    if (moved == -EINTR) continue;
    if (moved < 0) return static_cast<int>(-moved);
    if (moved == 0) return EFAULT;
    local = behind(local, static_cast<std::size_t>(moved));
    remote = behind(remote, static_cast<std::size_t>(moved));
  }
  return 0;
}

int cross_copy(System& system, Direction direction, pid_t process, void* local,
               std::uint64_t remote, std::size_t bytes) {
  if (bytes == 0) return 0;
  iovec here{local, bytes};
  iovec there{reinterpret_cast<void*>(remote), bytes};
  return cross_copy(system, direction, process, std::span(&here, 1), std::span(&there, 1));
}

std::string probe_cross_copy(System& system, pid_t process, std::uint64_t address,
                             std::uint64_t value) {
  std::uint64_t found = 0;
  const int error = cross_copy(system, Direction::read, process, &found, address, sizeof found);
  if (error == EPERM) {
    return "the system forbids it (a container's seccomp filter, Yama's ptrace_scope, or another "
           "user)";
  }
  if (error != 0) return std::strerror(error);
  if (found != value)
    return fmt::format("process {} is not the peer (another pid namespace)", process);
  return {};
}

} // namespace macadam::net::shm
