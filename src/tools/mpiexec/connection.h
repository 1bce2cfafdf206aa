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

// The process that connects with an mpiexec on another machine (ssh), or is one on this machine,
// and what is said to that and by it.
class Connection {
 public:
  // What mpiexec is started for there.
  struct Task {
    const char* word;     // its one argument
    bool is_here = false; // without a shell
    std::string first;    // that it is told, before the frames
    std::string what;     // is started: "ranks"
  };
  // Starts it. Throws std::runtime_error.
  Connection(std::string host, Task task, RemoteShell shell, const sigset_t& signal_mask);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // Ends it, and with it what is at its other end.
  ~Connection();

  [[nodiscard]] const std::string& host() const { return host_; } // as the user has it
  [[nodiscard]] bool is_here() const { return task_.is_here; }
  FrameStream& stream() { return *stream_; }
  void send(FrameKind kind, const boot::PacketWriter& body = {}) {
    stream_->send(kind, body);
    stream_->write_some();
  }
  [[nodiscard]] pid_t process() const { return process_; }
  // The process has ended, with this status of waitpid().
  void note_end(int status) { ended_ = status; }
  // Its stream is over before its time: the sentence about that. `answered`: something had come.
  // Waits a moment for the process to end, for its status.
  [[nodiscard]] std::string explain_loss(bool answered);
  // Nothing more is said. Gives what was said until then time to arrive.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  [[nodiscard]] std::vector<std::string> command() const;
  void wait_for_end(std::chrono::steady_clock::time_point until);

  const std::string host_;
  const Task task_;
  const RemoteShell shell_;
  pid_t process_ = -1;
  std::optional<int> ended_;
  std::unique_ptr<FrameStream> stream_;
};

} // namespace macadam::tools
