// SPDX-License-Identifier: BSD-3-Clause
#include "boot/joined_socket.h"

#include "boot/control.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace macadam::boot {
namespace {

constexpr std::uint64_t join_magic = 0x6d61636a6f696e31; // "macjoin1"

bool would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

} // namespace

JoinedSocket::JoinedSocket(int socket, const Met& own) : socket_(socket) {
  const Hello hello{join_magic, control_version, own.rank, own.job, own.meeting, 0};
  std::memcpy(own_.data(), &hello, sizeof hello);
  int type = 0;
  socklen_t bytes = sizeof type;
  if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0)
    base::fail(MPI_ERR_ARG, "file descriptor {} is no socket: {}", socket, std::strerror(errno));
  if (type != SOCK_STREAM)
    base::fail(MPI_ERR_ARG, "file descriptor {} is a socket that is no stream", socket);
}

// The flag makes single calls non-blocking, so the descriptor's own stay as they are.
bool JoinedSocket::send() {
  while (sent_ < own_.size()) {
    const ssize_t bytes =
        ::send(socket_, own_.data() + sent_, own_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes < 0 && would_wait()) return false;
    if (bytes < 0)
      base::fail(MPI_ERR_OTHER, "the socket cannot be written: {}", std::strerror(errno));
    sent_ += static_cast<std::size_t>(bytes);
  }
  return true;
}

bool JoinedSocket::receive() {
  while (received_ < theirs_.size()) {
    const ssize_t bytes =
        recv(socket_, theirs_.data() + received_, theirs_.size() - received_, MSG_DONTWAIT);
    if (bytes < 0 && would_wait()) return false;
    if (bytes < 0) base::fail(MPI_ERR_OTHER, "the socket cannot be read: {}", std::strerror(errno));
    if (bytes == 0)
      base::fail(MPI_ERR_OTHER,
                 "the other side has closed the socket, or has ended, after {} of "
                 "{} bytes",
                 received_, theirs_.size());
    received_ += static_cast<std::size_t>(bytes);
  }
  return true;
}

bool JoinedSocket::done() noexcept {
  try {
    const bool sent = send();
    return receive() && sent;
  } catch (...) {
    error_ = base::caught("for the other side of a socket");
    return true;
  }
}

Met JoinedSocket::take() {
  if (error_) throw std::move(*error_);
  Hello hello;
  std::memcpy(&hello, theirs_.data(), sizeof hello);
  if (hello.magic != join_magic)
    base::fail(MPI_ERR_OTHER,
               "the other side of the socket does not call MPI_Comm_join of Macadam");
  if (hello.version != control_version)
    base::fail(MPI_ERR_OTHER,
               "the other side of the socket speaks version {} of the control protocol, this one "
               "version {}; use one Macadam for both",
               hello.version, control_version);
  Hello own;
  std::memcpy(&own, own_.data(), sizeof own);
  return {hello.job, hello.rank, own.meeting + hello.meeting};
}

} // namespace macadam::boot
