// SPDX-License-Identifier: BSD-3-Clause
#include "boot/lone_server.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "boot/control.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

constexpr int socket_of_server = 3;
constexpr int longest_start_ms = 10'000;

std::string find_mpiexec() {
  if (const char* const named = secure_getenv(mpiexec_variable); named != nullptr) return named;
  Dl_info about{};
  if (dladdr(reinterpret_cast<const void*>(&start_lone_server), &about) == 0) return {};
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(about.dli_fname, error);
  // lib/libmpi_abi.so.1, or lib/x86_64-linux-gnu/libmpi_abi.so.1.
  for (const char* const bin : {"../bin", "../../bin"}) {
    const std::filesystem::path found = library.parent_path() / bin / "mpiexec";
    if (access(found.c_str(), X_OK) == 0) return found;
  }
  return {};
}

// Becomes the server. In a copy of a program that may have threads: system calls only.
[[noreturn]] void become_server(int socket, const char* path) {
  setsid(); // the terminal's signals are for the program
  if (socket != socket_of_server) dup2(socket, socket_of_server);
  fcntl(socket_of_server, F_SETFD, 0);
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) dup2(nothing, 0);
  syscall(SYS_close_range, socket_of_server + 1, ~0U, 0);
  static_assert(socket_of_server == 3);
  const char* const words[] = {path, serve_word, "3", nullptr};
  execv(path, const_cast<char* const*>(words));
  _exit(127);
}

// By a process in between, which ends at once, so that the program has no child that it does not
// know. That one ends without a signal, and only a wait that asks for such children sees it.
bool fork_server(int socket, const char* path) {
  const long between = syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, 0UL);
  if (between < 0) return false;
  if (between == 0) {
    const long server = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0UL);
    if (server == 0) become_server(socket, path);
    _exit(server < 0 ? errno : 0);
  }
  int status = 0;
  while (waitpid(static_cast<pid_t>(between), &status, __WALL) < 0 && errno == EINTR) {
  }
  errno = WEXITSTATUS(status);
  return errno == 0;
}

} // namespace

void start_lone_server(JobMemory& memory) {
  const std::string path = find_mpiexec();
  if (path.empty())
    base::fail(MPI_ERR_OTHER,
               "this program was started without mpiexec, and none was found beside the library to "
               "serve it; start it with mpiexec -n 1, or set {} to the path of Macadam's mpiexec",
               mpiexec_variable);
  memory.share();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    base::fail(MPI_ERR_OTHER, "no socket can be had to talk to mpiexec: {}", std::strerror(errno));
  const base::Descriptor own(ends[0]);
  base::Descriptor theirs(ends[1]);
  if (!fork_server(theirs.get(), path.c_str()))
    base::fail(MPI_ERR_OTHER, "no process can be started for mpiexec: {}", std::strerror(errno));
  theirs.reset();
  PacketWriter hello;
  hello.value(RequestHead{.job = memory.header().secret});
  hello.value(static_cast<std::int32_t>(getpid()));
  std::optional<Packet> answer;
  if (send_packet(own.get(), hello.bytes(), memory.fd())) {
    pollfd polled{own.get(), POLLIN, 0};
    while (poll(&polled, 1, longest_start_ms) < 0 && errno == EINTR) {
    }
    answer = receive_packet(own.get());
  }
  if (!answer)
    base::fail(MPI_ERR_OTHER,
               "{}, which should serve this program that was started without mpiexec, could not be "
               "started or is none of Macadam; start the program with mpiexec -n 1",
               path);
  PacketReader reader(std::move(answer->bytes));
  const auto head = reader.value<AnswerHead>();
  if (head.magic != control_magic || head.version != control_version)
    base::fail(MPI_ERR_OTHER, "{} is of another version than the library; install both together",
               path);
  if (head.error_class != MPI_SUCCESS) throw base::Error(head.error_class, reader.text());
}

} // namespace macadam::boot
