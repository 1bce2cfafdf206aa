// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace macadam::boot {

// Where processes are in their programs, "exchange (halo.c:40), main (halo.c:71)", from the
// function of MPI outwards, of all threads that are in one, else of the main one, by gdb, which is
// run on all of them at once and stops each for a moment. What gdb prints is taken whenever
// somebody looks, so nobody waits for it.
class Stacks {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Stacks(const std::vector<pid_t>& processes);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  // Ends those gdbs that still run, and lets their processes go.
  ~Stacks();

  // Takes what is there. True if no more will come: all gdbs have ended, or have had their time.
  bool are_known();
  // A process of which gdb has not told has the reason in place of a stack.
  [[nodiscard]] std::map<pid_t, std::string> by_process() const;

  static constexpr std::chrono::seconds longest{15}; // for all of them

 private:
  // gdb on one process.
  struct Debugger {
    pid_t process = 0;
    pid_t pid = -1;
    int output = -1; // -1: it has ended
    bool too_late = false;
    std::string text;
  };

  static bool start(Debugger& debugger);
  static void take(Debugger& debugger);
  static void end(Debugger& debugger);

  std::vector<pid_t> processes_;
  std::vector<Debugger> debuggers_;
  Clock::time_point end_ = Clock::now() + longest;
};

// What gdb prints of all threads, the main one first, as above; empty if there is no frame in it.
std::string read_stack(const std::string& backtrace);

} // namespace macadam::boot
