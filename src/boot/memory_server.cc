// SPDX-License-Identifier: BSD-3-Clause
#include "boot/memory_server.h"

#include "base/error.h"
#include "base/thread.h"
#include "boot/control.h"
#include "boot/streams.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

constexpr int longest_wait_ms = 30'000;
constexpr std::chrono::milliseconds nap{2}; // between two looks whether all have come
constexpr useconds_t rest_us = 100'000;

std::atomic<const MemoryServer*> server{nullptr}; // of this process

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
      memory_(fcntl(memory.fd(), F_DUPFD_CLOEXEC, first_job_descriptor + job_descriptors)),
      others_(others) {
  if (!socket_.is_open() || !memory_.is_open())
    base::fail(MPI_ERR_OTHER, "a socket for the other ranks of this machine cannot be made: {}",
               std::strerror(errno));
  thread_ = base::start_thread("macadam-memory", [this] { serve(); });
  server.store(this);
}

MemoryServer::~MemoryServer() {
  server.store(nullptr);
  shutdown(socket_.get(), SHUT_RDWR); // ends the wait
  thread_.join();
}

// Processes of other users are let go without a word.
void MemoryServer::serve() {
  while (others_.load() > 0) {
    pollfd polled{socket_.get(), POLLIN, 0};
    if (poll(&polled, 1, -1) < 0) continue;
    if ((polled.revents & POLLHUP) != 0) return;
    const base::Descriptor connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.is_open()) {
      if (errno == EINVAL) return;                             // shut down
      if (errno == EMFILE || errno == ENFILE) usleep(rest_us); // until there are descriptors again
      continue;
    }
    if (is_own(connection.get()) && send_packet(connection.get(), {std::byte{1}}, memory_.get()))
      others_.fetch_sub(1);
  }
}

void MemoryServer::finish() const {
  if (others_.load() == 0) return;
  flush_streams(); // what the program has written is not to wait
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(longest_wait_ms);
  while (others_.load() > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(nap);
}

JobMemory fetch_memory(const std::string& name) {
  const base::Descriptor socket(make_socket());
  int descriptor = -1;
  if (socket.is_open()) {
    while (connect_to(socket.get(), name) < 0 && errno == EAGAIN)
      usleep(1000);
    if (is_own(socket.get()) && wait_for(socket.get(), POLLIN))
      if (const std::optional<Packet> packet = receive_packet(socket.get()))
        descriptor = packet->descriptor;
  }
  if (descriptor < 0)
    base::fail(MPI_ERR_OTHER, "the first rank of this machine does not give the memory that its "
                              "ranks share; it has ended, or is in another network namespace");
  return receive_memory(descriptor);
}

void finish_serving() {
  if (const MemoryServer* const own = server.load(); own != nullptr) own->finish();
}

} // namespace macadam::boot
