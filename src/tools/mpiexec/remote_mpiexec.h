// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/frames.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace macadam::tools {

// How a command is started on another machine.
struct RemoteShell {
  std::vector<std::string> words; // before the host's name
  bool is_shell = true;           // the command behind it goes through a shell there
};
// MACADAM_SSH; else the batch system's `starter`, if there is one; else ssh. Throws
// std::runtime_error.
RemoteShell choose_shell(const std::vector<std::string>& starter);

// mpiexec on another machine, as this one has started it there for a task: the process that
// connects the two (ssh, or it itself if it is on this machine), and the frames that go through it.
class RemoteMpiexec {
 public:
  struct Task {
    const char* word;     // its one argument
    std::string what;     // is started: "ranks"
    std::string first;    // that it is told, before the frames
    bool is_here = false; // without a shell
  };
  // Starts it. Throws std::runtime_error.
  RemoteMpiexec(std::string host, Task task, RemoteShell shell, const sigset_t& signal_mask);
  RemoteMpiexec(const RemoteMpiexec&) = delete;
  RemoteMpiexec& operator=(const RemoteMpiexec&) = delete;
  // Ends the connection, and with it what is at its other end.
  ~RemoteMpiexec();

  [[nodiscard]] const std::string& name() const { return name_; } // as the user has it
  FrameStream& stream() { return *stream_; }
  [[nodiscard]] pid_t connection() const { return connection_; }
  // The process of the connection has ended, with this status of waitpid().
  void note_end(int status) { ended_ = status; }
  // Its stream is over before its time: the sentence about that, `talked` if it had been heard.
  // Waits a moment for the process to end, for its status.
  [[nodiscard]] std::string explain_loss(bool talked);
  // Nothing more is said. Gives what was said until then time to arrive.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  [[nodiscard]] std::vector<std::string> command() const;
  void wait_for_end(std::chrono::steady_clock::time_point until);

  const std::string name_;
  const Task task_;
  const RemoteShell shell_;
  pid_t connection_ = -1;
  std::optional<int> ended_;
  std::unique_ptr<FrameStream> stream_;
};

} // namespace macadam::tools
