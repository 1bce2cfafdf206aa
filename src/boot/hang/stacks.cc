// SPDX-License-Identifier: BSD-3-Clause
#include "boot/hang/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace macadam::boot {
namespace {

constexpr std::size_t most_frames = 8;

// What stands in place of a stack.
constexpr const char* without_gdb = "not known, as there is no gdb";
constexpr const char* too_late = "not known, as gdb has not told within 15 s";
constexpr const char* forbidden =
    "not known, as gdb may not look into it (docker run --cap-add SYS_PTRACE; sysctl "
    "kernel.yama.ptrace_scope=0)";

// "exchange (halo.c:40)" of "#1  0x00005 in exchange (...) at ../src/halo.c:40"; "poll
// (libc.so.6)".
std::string read_frame(std::string_view line) {
  line.remove_prefix(std::min(line.size(), line.find_first_of(" ")));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(" ")));
  if (line.starts_with("0x")) line.remove_prefix(std::min(line.size(), line.find(" in ") + 4));
  const std::string function(line.substr(0, line.find(" (")));
  for (const std::string_view mark : {") at ", ") from "}) {
    const std::size_t at = line.rfind(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view place = line.substr(at + mark.size());
    return fmt::format("{} ({})", function, place.substr(place.rfind('/') + 1));
  }
  return function;
}

bool is_of_mpi(std::string_view frame) {
  return frame.starts_with("MPI_") || frame.starts_with("PMPI_");
}

bool is_outermost(std::string_view frame) {
  return frame.starts_with("__libc_start") || frame.starts_with("start_thread");
}

struct Thread {
  std::vector<std::string> frames; // of the program
  bool is_in_mpi = false;
};

void add(Thread& thread, std::string&& frame) {
  const bool of_mpi = is_of_mpi(frame);
  thread.is_in_mpi = thread.is_in_mpi || of_mpi;
  if (of_mpi)
    thread.frames.clear(); // what is in there is not the program's
  else
    thread.frames.push_back(std::move(frame));
}

} // namespace

std::string read_stack(const std::string& backtrace) {
  std::vector<Thread> threads(1);
  std::istringstream lines(backtrace);
  bool ended = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Thread ")) {
      threads.emplace_back();
      ended = false;
    }
    if (!line.starts_with('#') || ended) continue;
    std::string frame = read_frame(line);
    ended = is_outermost(frame);
    if (!ended) add(threads.back(), std::move(frame));
  }
  std::erase_if(threads, [](const Thread& thread) { return thread.frames.empty(); });
  if (threads.empty()) return {};
  const bool any_in_mpi = std::ranges::any_of(threads, &Thread::is_in_mpi);
  std::string text;
  for (Thread& thread : threads) {
    if (any_in_mpi ? !thread.is_in_mpi : !text.empty()) continue;
    if (thread.frames.size() > most_frames) thread.frames.resize(most_frames);
    text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(thread.frames, ", "));
  }
  return text;
}

Stacks::Stacks(const std::vector<pid_t>& processes) : processes_(processes) {
  for (const pid_t process : processes_) {
    Debugger debugger;
    debugger.process = process;
    if (!start(debugger)) break;
    debuggers_.push_back(std::move(debugger));
  }
}

Stacks::~Stacks() {
  for (Debugger& debugger : debuggers_)
    if (debugger.output >= 0) end(debugger);
}

bool Stacks::start(Debugger& debugger) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const std::string process = std::to_string(debugger.process);
  const std::array<const char*, 16> words = {"gdb",  "-nx",
                                             "-q",   "-batch",
                                             "-iex", "set auto-load off",
                                             "-iex", "set debuginfod enabled off",
                                             "-p",   process.c_str(),
                                             "-ex",  "set width 0",
                                             "-ex",  "set print frame-arguments none",
                                             "-ex",  "thread apply all -ascending bt 40"};
  std::array<char*, words.size() + 1> arguments = {};
  for (std::size_t i = 0; i < words.size(); ++i)
    arguments[i] = const_cast<char*>(words[i]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error =
      posix_spawnp(&debugger.pid, "gdb", &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) close(ends[0]);
  if (error == 0) debugger.output = ends[0];
  return error == 0;
}

void Stacks::take(Debugger& debugger) {
  std::array<char, 4096> part;
  ssize_t bytes = 0;
  while ((bytes = read(debugger.output, part.data(), part.size())) > 0)
    debugger.text.append(part.data(), static_cast<std::size_t>(bytes));
  if (bytes == 0) end(debugger);
}

// Its child may have been waited for already, where all children are.
void Stacks::end(Debugger& debugger) {
  close(std::exchange(debugger.output, -1));
  if (waitpid(debugger.pid, nullptr, WNOHANG) != 0) return;
  kill(debugger.pid, SIGKILL);
  while (waitpid(debugger.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Stacks::are_known() {
  const bool time_is_up = Clock::now() >= end_;
  bool known = true;
  for (Debugger& debugger : debuggers_) {
    if (debugger.output >= 0) take(debugger);
    if (debugger.output >= 0 && time_is_up) {
      debugger.too_late = true;
      end(debugger);
    }
    known = known && debugger.output < 0;
  }
  return known;
}

std::map<pid_t, std::string> Stacks::by_process() const {
  std::map<pid_t, std::string> stacks;
  for (const pid_t process : processes_)
    stacks[process] = without_gdb;
  for (const Debugger& debugger : debuggers_) {
    std::string& stack = stacks[debugger.process];
    stack = read_stack(debugger.text);
    if (stack.empty()) stack = debugger.too_late ? too_late : forbidden;
  }
  return stacks;
}

} // namespace macadam::boot
