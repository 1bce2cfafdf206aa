// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <poll.h>
#include <string>
#include <vector>

namespace macadam::tools {

// Standard input of rank 0 when mpiexec's own is a terminal. A terminal lets only its foreground
// process group read, which is mpiexec's and not the ranks', so mpiexec reads and passes on. Any
// other input (a file, a pipe) rank 0 gets as it is and this class does nothing.
class TerminalInput {
 public:
  // Throws std::system_error.
  TerminalInput();
  TerminalInput(const TerminalInput&) = delete;
  TerminalInput& operator=(const TerminalInput&) = delete;
  ~TerminalInput();

  // What rank 0 reads from, for rank 0 alone; -1: mpiexec's own. forget_reading_end() once rank 0
  // has started.
  [[nodiscard]] int reading_end() const { return reading_end_; }
  void forget_reading_end();

  // Appends the one entry to poll, and takes the answer.
  void list(std::vector<pollfd>& polled) const;
  void take(const pollfd& polled);
  // True if mpiexec is in the background: look again in a while whether that has changed.
  [[nodiscard]] bool must_look_again() const { return writing_end_ >= 0 && !in_foreground(); }

 private:
  static bool in_foreground();
  void close_writing_end();

  int reading_end_ = -1, writing_end_ = -1;
  std::string pending_; // read and not yet passed on
};

} // namespace macadam::tools
