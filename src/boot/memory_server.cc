// SPDX-License-Identifier: BSD-3-Clause
#include "boot/memory_server.h"

#include "base/error.h"
#include "base/thread.h"
#include "boot/control.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

constexpr int longest_wait_ms = 30'000;

bool is_own(int socket) {
  return user_of(socket) == geteuid();
}

bool wait_for(int socket, short what) {
  pollfd polled{socket, what, 0};
  int found = 0;
  while ((found = poll(&polled, 1, longest_wait_ms)) < 0 && errno == EINTR) {
  }
  return found > 0;
}

} // namespace

MemoryServer::MemoryServer(const JobMemory& memory, std::uint32_t others)
    : name_(random_socket_name()), socket_(listen_at(name_)),
      memory_(fcntl(memory.fd(), F_DUPFD_CLOEXEC, first_job_descriptor + job_descriptors)) {
  if (socket_ < 0 || memory_ < 0)
    base::fail(MPI_ERR_OTHER, "a socket for the other ranks of this machine cannot be made: {}",
               std::strerror(errno));
  thread_ = base::start_thread("macadam-memory", [this, others] { serve(others); });
}

MemoryServer::~MemoryServer() {
  shutdown(socket_, SHUT_RDWR); // ends the wait
  thread_.join();
  close(socket_);
  close(memory_);
}

// Processes of other users are let go without a word.
void MemoryServer::serve(std::uint32_t others) const {
  while (others > 0) {
    pollfd polled{socket_, POLLIN, 0};
    if (poll(&polled, 1, -1) < 0) continue;
    if ((polled.revents & POLLHUP) != 0) return;
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EINVAL) return; // shut down
      continue;
    }
    if (is_own(connection) && send_packet(connection, {std::byte{1}}, memory_)) --others;
    close(connection);
  }
}

JobMemory fetch_memory(const std::string& name) {
  const int socket = make_socket();
  int descriptor = -1;
  if (socket >= 0) {
    while (connect_to(socket, name) < 0 && errno == EAGAIN)
      usleep(1000);
    if (is_own(socket) && wait_for(socket, POLLIN))
      if (const std::optional<Packet> packet = receive_packet(socket))
        descriptor = packet->descriptor;
    close(socket);
  }
  if (descriptor < 0)
    base::fail(MPI_ERR_OTHER, "the first rank of this machine does not give the memory that its "
                              "ranks share; it has ended, or is in another network namespace");
  return receive_memory(descriptor);
}

} // namespace macadam::boot
