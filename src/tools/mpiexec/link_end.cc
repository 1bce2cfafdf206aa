// SPDX-License-Identifier: BSD-3-Clause
// The far end of a link: connects the remote shell that has started it with an mpiexec here.
#include "tools/mpiexec/head.h"
#include "tools/mpiexec/links.h"

#include "base/error.h"
#include "boot/control.h"
#include "boot/machine.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_answer = 10s;

std::string read_line() {
  std::string line;
  for (char c = 0; read(0, &c, 1) == 1 && c != '\n';)
    if (line.size() < boot::longest_socket_name) line += c;
  return line;
}

void connect_with(int socket, const std::string& name) {
  const auto until = std::chrono::steady_clock::now() + time_to_answer;
  while (boot::connect_to(socket, name) != 0) {
    if ((errno != EAGAIN && errno != EINTR) || std::chrono::steady_clock::now() > until)
      base::fail(MPI_ERR_PORT, "the mpiexec on host {} has ended, and its jobs with it",
                 boot::host_name());
    std::this_thread::sleep_for(1ms);
  }
  if (const auto user = boot::user_of(socket); user != geteuid())
    base::fail(MPI_ERR_PORT,
               "user {} listens on host {} where an mpiexec of user {} was expected: nothing was "
               "told to it",
               user ? std::to_string(*user) : "unknown", boot::host_name(), geteuid());
}

// A stream whose other end the mpiexec of that name has. Throws base::Error.
int connect_stream(const std::string& name) {
  const int socket = boot::make_socket();
  std::array<int, 2> ends{};
  if (socket < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    base::fail(MPI_ERR_OTHER, "a socket on host {}: {}", boot::host_name(), std::strerror(errno));
  connect_with(socket, name);
  boot::PacketWriter request;
  request.value(boot::RequestHead{.request = boot::Request::link});
  if (!boot::send_packet(socket, request.bytes(), ends[1]))
    base::fail(MPI_ERR_OTHER, "the mpiexec on host {} cannot be asked: {}", boot::host_name(),
               std::strerror(errno));
  close(ends[1]);
  pollfd polled{socket, POLLIN, 0};
  poll(&polled, 1, static_cast<int>(std::chrono::milliseconds(time_to_answer).count()));
  std::optional<boot::Packet> packet = boot::receive_packet(socket);
  if (!packet)
    base::fail(MPI_ERR_OTHER, "the mpiexec on host {} does not answer", boot::host_name());
  boot::PacketReader answer(std::move(packet->bytes));
  const auto head = answer.value<boot::AnswerHead>();
  if (head.magic == boot::control_magic && head.version != boot::control_version)
    base::fail(MPI_ERR_OTHER,
               "the mpiexec on host {} speaks version {} of the control protocol, that of the "
               "other job version {}; use one Macadam for both",
               boot::host_name(), head.version, boot::control_version);
  if (head.error_class != MPI_SUCCESS) throw base::Error(head.error_class, answer.text());
  close(socket);
  return ends[0];
}

bool write_all(int to, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(to, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

// Until one side ends.
void pass_on(int stream) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    std::array polled{pollfd{0, POLLIN, 0}, pollfd{stream, POLLIN, 0}};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    for (const pollfd& side : polled) {
      if (side.revents == 0) continue;
      const ssize_t bytes = read(side.fd, buffer.data(), buffer.size());
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0 ||
          !write_all(side.fd == 0 ? stream : 1, buffer.data(), static_cast<std::size_t>(bytes)))
        return;
    }
  }
}

} // namespace

int run_link() {
  signal(SIGPIPE, SIG_IGN);
  const std::string name = read_line();
  try {
    pass_on(connect_stream(name));
    return 0;
  } catch (const base::Error& error) {
    FrameStream stream(0, 1);
    Head(stream).refuse(error.text);
    return 1;
  }
}

} // namespace macadam::tools
