// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/command.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace macadam::tools {
namespace {

// The child's process id; its standard output goes to `out`.
pid_t start(const std::vector<std::string>& arguments, int out) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t child = -1;
  const int error = posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error(
        fmt::format("{} cannot be started: {}", arguments[0], std::strerror(error)));
  return child;
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t bytes = read(from, part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

} // namespace

std::string output_of(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  pid_t child = -1;
  try {
    child = start(arguments, ends[1]);
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  close(ends[1]);
  std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("'{}' failed with {}", fmt::join(arguments, " "),
                                         WIFEXITED(status)
                                             ? fmt::format("status {}", WEXITSTATUS(status))
                                             : fmt::format("signal {}", WTERMSIG(status))));
  }
  return text;
}

} // namespace macadam::tools
