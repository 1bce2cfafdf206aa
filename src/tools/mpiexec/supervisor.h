// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "boot/machine.h"
#include "tools/mpiexec/descendants.h"
#include "tools/mpiexec/hang_report.h"
#include "tools/mpiexec/input.h"
#include "tools/mpiexec/neighbours.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/output.h"
#include "tools/mpiexec/ranks.h"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace macadam::tools {

// Starts a job and watches it to its end: one thread, one poll(). Of a job on several machines, the
// ranks of this one.
class Supervisor {
 public:
  // `memory` is for the ranks of `options`; the rest outlives the supervisor. Throws
  // std::system_error when the system refuses what is needed.
  Supervisor(const Options& options, boot::JobMemory memory, Neighbours* neighbours = nullptr);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Returns mpiexec's exit status.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;

  void block_signals();
  void start_ranks();
  void wait_for_events();
  void on_deadlines();

  void take_signals();
  void on_signal(int number);
  void reap();
  void on_end(int rank, int status);
  void on_abort(int rank);
  void fail_by_abort(int rank);
  void look_for_aborts();
  void look_for_absent_ranks();

  // The first failure decides the exit status and is told; later ones follow from it.
  void fail(int rank, const std::string& cause, int status, bool ends_job);
  // Lets those that wait in MPI flush their streams, for a moment; then the signals.
  void end_ranks(const std::string& why);
  void terminate_ranks();
  void exchange();
  void say(const std::string& sentence);
  [[nodiscard]] std::string name(int rank) const;
  // Of the ranks of this machine.
  [[nodiscard]] int first() const { return static_cast<int>(memory_.own_node().first); }
  [[nodiscard]] int end() const { return first() + options_.ranks(); }
  [[nodiscard]] std::string hint_for_memory(int signal) const;
  [[nodiscard]] pid_t& pid(int rank) {
    return pids_[static_cast<std::size_t>(memory_.local_index(rank))];
  }

  void ask_for_reports();
  void look_at_ranks();
  void take_look();
  [[nodiscard]] bool is_reporting() const { return report_ || look_again_; }
  [[nodiscard]] bool all_have_answered() const;
  void print_hang_report();
  void print_job_report();
  // Waits until all is written, unless it was told to end.
  void flush();
  void look_for_lost_output();

  const Options& options_;
  boot::JobMemory memory_;
  Neighbours* const neighbours_; // null: the job is on this machine only
  sigset_t heeded_, original_mask_;
  int signals_; // signalfd
  Outlet out_{1}, error_{2};
  LabelledOutput output_{out_, error_};
  TerminalInput input_;
  Descendants descendants_;
  std::optional<Watchdog> watchdog_;

  const std::uint64_t ends_before_ = boot::ends_for_want_of_memory();
  std::vector<pid_t> pids_; // by place among this machine's ranks; 0 once it has ended
  int alive_ = 0;
  bool failed_ = false;
  bool ending_ = false;
  int status_ = 0;
  int interrupts_ = 0;
  sigset_t passed_on_;
  int end_signal_ = 0; // the last one passed on of those that users end programs with
  bool lost_output_told_ = false;
  std::optional<int> follower_; // a rank that aborted because another one was gone
  Deadline timeout_, terminate_, kill_, blame_, exchange_;
  Deadline report_;                      // of the look that the ranks are asked for
  Deadline look_again_;                  // when they will be asked a second time
  std::vector<RankStatus> earlier_look_; // of two
};

} // namespace macadam::tools
