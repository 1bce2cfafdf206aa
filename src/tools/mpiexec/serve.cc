// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/serve.h"

#include "base/error.h"
#include "boot/control.h"
#include "boot/job_memory.h"
#include "tools/mpiexec/supervisor.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace macadam::tools {
namespace {

constexpr int longest_wait_ms = 10'000;

int read_descriptor(std::string_view text) {
  int descriptor = -1;
  const char* const end = text.data() + text.size();
  ucred who{};
  socklen_t bytes = sizeof who;
  if (std::from_chars(text.data(), end, descriptor).ptr != end ||
      getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0)
    throw std::runtime_error("this is how a program that was started alone starts mpiexec; there "
                             "is nothing to do for others");
  return descriptor;
}

// The program at the other end, by a descriptor: its number could be another's once it has ended.
int open_program(int socket, pid_t& pid) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || who.uid != geteuid())
    base::fail(MPI_ERR_OTHER, "the program that mpiexec should serve is another user's");
  pid = who.pid;
  const long process = syscall(SYS_pidfd_open, pid, 0);
  if (process < 0)
    base::fail(MPI_ERR_OTHER,
               "mpiexec cannot watch process {}: {}; Linux 5.3 can, or start the "
               "program with mpiexec -n 1",
               pid, std::strerror(errno));
  return static_cast<int>(process);
}

} // namespace

int serve_lone_program(std::string_view text) {
  const int socket = read_descriptor(text);
  pollfd polled{socket, POLLIN, 0};
  poll(&polled, 1, longest_wait_ms);
  std::optional<boot::Packet> hello = boot::receive_packet(socket);
  if (!hello) return 1; // it has ended
  boot::PacketWriter answer;
  try {
    boot::PacketReader reader(std::move(hello->bytes));
    const auto head = reader.value<boot::RequestHead>();
    if (head.magic != boot::control_magic || head.version != boot::control_version)
      base::fail(MPI_ERR_OTHER, "mpiexec is of another version than the program's library");
    pid_t pid = 0;
    const int process = open_program(socket, pid);
    const Options options;
    Supervisor supervisor(options, boot::receive_memory(hello->descriptor), pid, process);
    answer.value(boot::AnswerHead{});
    if (!boot::send_packet(socket, answer.bytes())) return 1;
    close(socket);
    return supervisor.run();
  } catch (const base::Error& error) {
    answer.value(boot::AnswerHead{.error_class = error.error_class});
    answer.text(error.text);
    boot::send_packet(socket, answer.bytes());
    return 1;
  }
}

} // namespace macadam::tools
