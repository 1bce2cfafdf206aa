// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/copy.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace macadam::net::shm {

int cross_copy(Direction direction, pid_t process, void* local, std::uint64_t remote,
               std::size_t bytes) {
  // The kernel cuts a call at 2 GiB less a page, and a signal may cut it anywhere.
  constexpr std::size_t longest = std::size_t{1} << 30;
  auto* here = static_cast<std::byte*>(local);
  while (bytes > 0) {
    const iovec local_part{here, std::min(bytes, longest)};
    const iovec remote_part{reinterpret_cast<void*>(remote), local_part.iov_len};
    const ssize_t moved = direction == Direction::write
                              ? process_vm_writev(process, &local_part, 1, &remote_part, 1, 0)
                              : process_vm_readv(process, &local_part, 1, &remote_part, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno;
    if (moved == 0) return EFAULT;
    here += moved;
    remote += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return 0;
}

std::string probe_cross_copy(pid_t process, std::uint64_t address, std::uint64_t value) {
  std::uint64_t found = 0;
  const int error = cross_copy(Direction::read, process, &found, address, sizeof found);
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
