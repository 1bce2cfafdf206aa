// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/listening.h"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::net::ofi {
namespace {

constexpr int longest_ms = 5;

// What becomes of a connection: an error of connect(), or 0.
int try_connection(int connection, const sockaddr* address, socklen_t bytes) {
  if (connect(connection, address, bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd decided = {connection, POLLOUT, 0};
  if (::poll(&decided, 1, longest_ms) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t error_bytes = sizeof error;
  getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &error_bytes);
  return error;
}

} // namespace

bool nobody_listens(const wire::Endpoint& endpoint) noexcept {
  const bool is_ip = endpoint.format == FI_SOCKADDR_IN || endpoint.format == FI_SOCKADDR_IN6;
  sockaddr_storage address = {};
  if (!is_ip || endpoint.bytes > sizeof address || endpoint.bytes > endpoint.address.size())
    return false;
  std::memcpy(&address, endpoint.address.data(), endpoint.bytes);
  const int connection = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection < 0) return false;
  const int error =
      try_connection(connection, reinterpret_cast<const sockaddr*>(&address), endpoint.bytes);
  close(connection);
  return error == ECONNREFUSED;
}

} // namespace macadam::net::ofi
