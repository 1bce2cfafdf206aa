// SPDX-License-Identifier: BSD-3-Clause
#include "boot/call.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_answer = 10s; // for what mpiexec answers at once
constexpr int nap_ms = 10;

} // namespace

Call::Call(Whom whom, PacketWriter request, std::optional<double> longest)
    : whom_(std::move(whom)), request_(std::move(request)), longest_(longest.value_or(0)),
      socket_(make_socket()) {
  if (!socket_.is_open())
    base::fail(MPI_ERR_OTHER, "no socket can be had to talk to mpiexec: {}", std::strerror(errno));
  if (request_.bytes().size() > longest_packet) {
    error_ = base::make_error(MPI_ERR_ARG,
                              "what mpiexec is asked for takes {} bytes, {} is the most; pass long "
                              "arguments in a message or a file",
                              request_.bytes().size(), longest_packet);
    stage_ = Stage::over;
  }
  // A time beyond a year is as good as none.
  constexpr double year = 365.0 * 24 * 3600;
  if (longest && *longest < year)
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(*longest));
}

bool Call::done() noexcept {
  try {
    advance();
  } catch (...) {
    error_ = base::caught("for an answer of mpiexec");
    stage_ = Stage::over;
  }
  return stage_ == Stage::over;
}

void Call::advance() {
  if (stage_ == Stage::connecting) connect();
  if (stage_ == Stage::sending) send();
  if (stage_ == Stage::waiting) receive();
  if (stage_ != Stage::over && deadline_ && Clock::now() >= *deadline_) give_up_waiting();
}

void Call::connect() {
  if (connect_to(socket_.get(), whom_.socket) != 0) {
    if (errno == EAGAIN || errno == EINTR) return; // many are waiting to be served
    if (errno == ECONNREFUSED) fail_as_gone();
    base::fail(MPI_ERR_OTHER, "mpiexec's socket cannot be reached: {}", std::strerror(errno));
  }
  const std::optional<uid_t> user = user_of(socket_.get());
  if (!user || *user != geteuid())
    base::fail(
        whom_.error_class,
        "user {} listens where a process of this user ({}) was expected: nothing was told to "
        "it; end that process, or ask its owner to",
        user ? std::to_string(*user) : "unknown", geteuid());
  stage_ = Stage::sending;
}

void Call::send() {
  if (send_packet(socket_.get(), request_.bytes())) {
    stage_ = Stage::waiting;
    return;
  }
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return;
  if (errno == EPIPE || errno == ECONNRESET) fail_as_gone();
  base::fail(MPI_ERR_OTHER, "mpiexec cannot be asked: {}", std::strerror(errno));
}

void Call::receive() {
  if (std::optional<Packet> packet = receive_packet(socket_.get())) return read(std::move(*packet));
  if (errno == EAGAIN || errno == EINTR) return;
  if (errno == 0 || errno == ECONNRESET) fail_as_gone();
  base::fail(MPI_ERR_OTHER, "mpiexec's answer cannot be read: {}", std::strerror(errno));
}

void Call::read(Packet packet) {
  descriptor_ = base::Descriptor(packet.descriptor);
  answer_ = PacketReader(std::move(packet.bytes));
  const auto head = answer_.value<AnswerHead>();
  if (head.magic != control_magic || head.version != control_version)
    base::fail(
        MPI_ERR_OTHER,
        "the other side's mpiexec does not speak version {} of the control protocol, but {}; "
        "use one Macadam for both",
        control_version,
        head.magic == control_magic ? fmt::format("version {}", head.version) : "something else");
  if (head.error_class == an_introduction) {
    introduction_ = std::move(answer_);
    return;
  }
  stage_ = Stage::over;
  if (head.error_class == nobody_there) throw base::Error(whom_.error_class, answer_.text());
  if (head.error_class != MPI_SUCCESS) throw base::Error(head.error_class, answer_.text());
}

// An answer that has come is still taken, and after this none comes: the other side cannot have
// sent one that is lost.
void Call::give_up_waiting() {
  if (stage_ == Stage::waiting) {
    shutdown(socket_.get(), SHUT_RD);
    if (std::optional<Packet> packet = receive_packet(socket_.get()))
      return read(std::move(*packet));
  }
  base::fail(whom_.error_class, "the other side did not come within {} s", longest_);
}

void Call::fail_as_gone() const {
  throw base::Error(whom_.error_class, whom_.sentence);
}

PacketReader Call::wait() {
  for (const auto end = Clock::now() + time_to_answer; !done();) {
    if (Clock::now() >= end)
      base::fail(MPI_ERR_OTHER, "mpiexec has not answered within {} s; is it stopped?",
                 std::chrono::seconds(time_to_answer).count());
    pollfd polled{socket_.get(), POLLIN, 0};
    poll(&polled, 1, nap_ms);
  }
  return take();
}

PacketReader Call::take() {
  if (error_) throw std::move(*error_);
  return std::move(answer_);
}

std::optional<PacketReader> Call::take_introduction() {
  if (!introduction_ && stage_ == Stage::over && !error_)
    if (std::optional<Packet> packet = receive_packet(socket_.get())) read(std::move(*packet));
  return std::exchange(introduction_, {});
}

// Without memory for it the job is ended, as if the caller had.
void Call::confirm() const noexcept {
  try {
    PacketWriter taken;
    taken.value(AnswerHead{});
    send_packet(socket_.get(), taken.bytes());
  } catch (const std::bad_alloc&) {
  }
}

} // namespace macadam::boot
