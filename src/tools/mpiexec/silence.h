// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace macadam::tools {

// More threads want to run on this machine than it has cores, so that processes may be late; or
// nobody knows.
bool is_machine_busy();

// How long a process on another machine may say nothing before it is taken for gone: so many
// seconds, but at least ten if its machine or this one is busy. Both sides send a beat each quarter
// of a second, and silence is counted in beats of our own: if this process did not run for a while,
// it has not listened either.
class Silence {
 public:
  static constexpr std::chrono::milliseconds interval{250}; // of beats

  explicit Silence(double seconds);

  // The other side has said something.
  void end() { silent_ = 0; }
  // ... whether its machine is busy. Before, it may be.
  void note_other(bool busy) { is_other_busy_ = busy; }
  // A beat of ours. True if the other side is gone.
  bool count(bool busy_here);

  // It says nothing, though perhaps not for long enough to be gone.
  [[nodiscard]] bool is_long() const { return silent_ >= least_; }
  // How long it may say nothing, as was found with the last beat.
  [[nodiscard]] std::chrono::milliseconds allowed() const { return allowed_ * interval; }
  [[nodiscard]] double allowed_seconds() const {
    return std::chrono::duration<double>(allowed()).count();
  }

 private:
  int least_, most_, allowed_, silent_ = 0; // beats
  bool is_other_busy_ = true;
};

} // namespace macadam::tools
