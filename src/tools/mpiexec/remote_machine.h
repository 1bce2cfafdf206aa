// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/frames.h"
#include "tools/mpiexec/proxy_order.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
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

// A machine of a job as the first mpiexec sees it: the process that connects it with the proxy
// there (ssh, or the proxy itself on this machine), and what is known of the machine.
class RemoteMachine {
 public:
  // Starts the proxy. `is_here`: without ssh. Throws std::runtime_error.
  RemoteMachine(std::string name, bool is_here, RemoteShell shell, const sigset_t& signal_mask);
  RemoteMachine(const RemoteMachine&) = delete;
  RemoteMachine& operator=(const RemoteMachine&) = delete;
  // Ends the connection, and with it the proxy.
  ~RemoteMachine();

  [[nodiscard]] const std::string& name() const { return name_; } // as the user has it
  FrameStream& stream() { return *stream_; }
  [[nodiscard]] pid_t connection() const { return connection_; }
  // The process of the connection has ended, with this status of waitpid().
  void note_end(int status) { ended_ = status; }
  // Its stream is over before its time: the sentence about that. Waits a moment for the process to
  // end, for its status.
  [[nodiscard]] std::string explain_loss();

  std::optional<ProxyHello> hello; // once it has come
  bool started = false;            // has its order
  bool done = false;               // no rank is left there
  bool lost = false;               // nothing comes from it any more
  bool heard = false;              // its ranks are started, and it is heard
  int silent_beats = 0;
  bool answered = false; // has told what its ranks wait for, since they were asked
  bool locates = false;  // ... is asked where ranks are in their programs, and has not told

 private:
  [[nodiscard]] std::vector<std::string> command() const;

  std::string name_;
  bool is_here_;
  RemoteShell shell_;
  pid_t connection_ = -1;
  std::optional<int> ended_;
  std::unique_ptr<FrameStream> stream_;
};

} // namespace macadam::tools
