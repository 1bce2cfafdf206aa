// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::tools {

// A pipe that rank 0 reads as its standard input, and what has not gone into it yet.
class InputPipe {
 public:
  InputPipe() = default;
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;
  ~InputPipe();

  // Throws std::runtime_error.
  void open();
  [[nodiscard]] bool is_open() const { return writing_end_ >= 0; }
  // What rank 0 reads from, for rank 0 alone; -1: none. forget_reading_end() once rank 0 has
  // started.
  [[nodiscard]] int reading_end() const { return reading_end_; }
  void forget_reading_end();

  void append(std::string_view text) { pending_ += text; }
  // Nothing follows what was appended.
  void end();
  [[nodiscard]] bool has_pending() const { return !pending_.empty(); }
  // Writes what goes without waiting; how many bytes went, or were lost as rank 0 reads no more.
  std::size_t write_some();
  [[nodiscard]] pollfd polled() const { return {has_pending() ? writing_end_ : -1, POLLOUT, 0}; }

 private:
  void close_writing_end();

  int reading_end_ = -1, writing_end_ = -1;
  std::string pending_;
  bool ends_ = false;
};

// Standard input of rank 0 when mpiexec's own is a terminal. A terminal lets only its foreground
// process group read, which is mpiexec's and not the ranks', so mpiexec reads and passes on. Any
// other input (a file, a pipe) rank 0 gets as it is and this class does nothing.
class TerminalInput {
 public:
  // Throws std::system_error.
  TerminalInput();

  // What rank 0 reads; not open: mpiexec's own.
  [[nodiscard]] InputPipe& pipe() { return pipe_; }

  // Appends the one entry to poll, and takes the answer.
  void list(std::vector<pollfd>& polled) const;
  void take(const pollfd& polled);
  // True if mpiexec is in the background: look again in a while whether that has changed.
  [[nodiscard]] bool must_look_again() const { return pipe_.is_open() && !in_foreground(); }

  // Whether the terminal, mpiexec's standard input, may be read now.
  static bool in_foreground();

 private:
  InputPipe pipe_;
};

} // namespace macadam::tools
