// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/connection.h"

#include "boot/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_end = 300ms; // of ssh, once its output has ended
constexpr const char* default_shell = "ssh -x -o BatchMode=yes";

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) < 0)
    throw std::runtime_error(fmt::format("reading /proc/self/exe: {}", std::strerror(errno)));
  return path.data();
}

// A word as the shell of the other machine has to have it.
std::string quoted(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+=:,@%";
  if (word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::runtime_error(boot::explain_failure("making a pipe", errno));
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  int take(std::size_t end) { return std::exchange(ends[end], -1); }

  std::array<int, 2> ends{-1, -1};
};

// In the child. A terminal's signals are mpiexec's, which passes them on: so it has a session of
// its own. ssh ends with mpiexec, even if the other machine does not answer; a proxy on this
// machine sees the end of its input and ends in good order.
[[noreturn]] void become(char** command, const sigset_t& mask, const Pipe& in, const Pipe& out,
                         const Pipe& trouble, bool ends_with_us, pid_t parent) {
  setsid();
  if (ends_with_us) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
  }
  dup2(in.ends[0], 0);
  dup2(out.ends[1], 1);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(command[0], command);
  const int error = errno;
  if (::write(trouble.ends[1], &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

} // namespace

RemoteShell choose_shell(const std::vector<std::string>& starter) {
  const char* const text = std::getenv("MACADAM_SSH");
  const bool is_set = text != nullptr && *text != 0;
  if (!is_set && !starter.empty()) return {starter, false};
  std::istringstream words(is_set ? text : default_shell);
  RemoteShell shell;
  for (std::string word; words >> word;)
    shell.words.push_back(word);
  if (shell.words.empty()) throw std::runtime_error("MACADAM_SSH names no program");
  return shell;
}

std::vector<std::string> Connection::command() const {
  if (task_.is_here) return {own_path(), task_.word};
  std::vector<std::string> words = shell_.words;
  words.push_back(host_);
  words.push_back(shell_.is_shell ? quoted(own_path()) : own_path());
  words.emplace_back(task_.word);
  return words;
}

Connection::Connection(std::string host, Task task, RemoteShell shell, const sigset_t& signal_mask)
    : host_(std::move(host)), task_(std::move(task)), shell_(std::move(shell)) {
  std::vector<std::string> words = command();
  std::vector<char*> pointers;
  for (std::string& each : words)
    pointers.push_back(each.data());
  pointers.push_back(nullptr);

  Pipe in, out, trouble;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) throw std::runtime_error(boot::explain_failure("starting a process", errno));
  if (process_ == 0) become(pointers.data(), signal_mask, in, out, trouble, !task_.is_here, parent);
  close(trouble.take(1));
  int error = 0;
  if (read(trouble.ends[0], &error, sizeof error) == ssize_t{sizeof error}) {
    waitpid(process_, nullptr, 0);
    throw std::runtime_error(fmt::format(
        "{}, which is to start {} on host {}, cannot be run: {}; MACADAM_SSH names another "
        "program, to be called with a host and a command",
        words[0], task_.what, host_, std::strerror(error)));
  }
  stream_ = std::make_unique<FrameStream>(out.take(0), in.take(1), task_.first);
}

Connection::~Connection() {
  stream_.reset();
  if (process_ <= 0 || ended_) return;
  // The proxy has said that it is done, or does not answer. One on this machine ends by itself.
  if (!task_.is_here) kill(process_, SIGKILL);
  const auto until = std::chrono::steady_clock::now() + 1s;
  while (waitpid(process_, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(1ms);
}

void Connection::wait_for_end(std::chrono::steady_clock::time_point until) {
  for (int status = 0; !ended_ && std::chrono::steady_clock::now() < until;)
    if (waitpid(process_, &status, WNOHANG) == process_)
      ended_ = status;
    else
      std::this_thread::sleep_for(1ms);
}

void Connection::finish(std::chrono::steady_clock::time_point until) {
  stream_.reset();
  wait_for_end(until);
}

std::string Connection::explain_loss(bool answered) {
  wait_for_end(std::chrono::steady_clock::now() + time_to_end);
  const std::string shell = task_.is_here ? "mpiexec" : shell_.words[0];
  std::string how = "has closed its output";
  if (ended_ && WIFSIGNALED(*ended_))
    how = fmt::format("was killed by signal {}", WTERMSIG(*ended_));
  else if (ended_)
    how = fmt::format("ended with status {}", WEXITSTATUS(*ended_));
  if (answered) return fmt::format("the connection to host {} is lost: {} {}", host_, shell, how);
  const int status = ended_ && WIFEXITED(*ended_) ? WEXITSTATUS(*ended_) : 0;
  if (status == 126 || status == 127)
    return fmt::format("{} cannot be run on host {} ({} {}): Macadam is at the same path on all "
                       "machines of a job",
                       own_path(), host_, shell, how);
  return fmt::format("host {} cannot be reached: {} {}; \"{} {} true\" has to work without a "
                     "question",
                     host_, shell, how, fmt::format("{}", fmt::join(shell_.words, " ")), host_);
}

} // namespace macadam::tools
