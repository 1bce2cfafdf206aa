// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "boot/machine.h"
#include "tools/mpiexec/descendants.h"
#include "tools/mpiexec/hang_watch.h"
#include "tools/mpiexec/head.h"
#include "tools/mpiexec/input.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/output.h"
#include "tools/mpiexec/ranks.h"
#include "tools/mpiexec/running_job.h"
#include "tools/mpiexec/services.h"
#include "tools/mpiexec/signals.h"

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace macadam::tools {

// Starts a job and watches it, and those that it spawns, to their ends: one thread, one poll(). Of
// a job on several machines, the ranks of this one, for a `head`.
//
// All jobs of an mpiexec are one to the user: a failure ends them all, and the first one is
// mpiexec's exit status.
class Supervisor final : private Services::Directory {
 public:
  // `memory` is for the ranks of `options`, `socket` the name at which it is asked
  // (boot/control.h), a random one if none is given; the rest outlives the supervisor. Throws
  // std::system_error when the system refuses what is needed.
  Supervisor(const Options& options, boot::JobMemory memory, Head* head = nullptr,
             const std::string& socket = {});
  // Serves a program that was started alone (RunningJob).
  Supervisor(const Options& options, boot::JobMemory memory, pid_t pid, int process);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Returns mpiexec's exit status.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;
  // A rank that aborted because another one was gone.
  struct Follower {
    int job;
    int rank;
  };

  [[nodiscard]] Outlet make_outlet(int stream) const;
  void begin();
  void describe(boot::JobMemory& memory);
  void start_first_job();
  // Starts the processes of a job that has none.
  void start_ranks(RunningJob& job, const std::vector<base::Threads>& core_sets, const Gate& gate);
  [[nodiscard]] OutputFiles files_of(const RunningJob& job, int rank) const;
  void empty(const OutputFiles& files);
  void wait_for_events();
  [[nodiscard]] Clock::duration longest_wait() const;
  void on_deadlines();
  void forget_ended_jobs();

  void take_orders(const pollfd* polled);
  void end_for_head();
  void take_signals();
  void on_signal(int number, bool is_users);
  void reap();
  void on_end(RunningJob& job, int rank, int status);
  void on_end_of_lone_program();
  void on_abort(RunningJob& job, int rank);
  void fail_by_abort(RunningJob& job, int rank, const std::string& reason);
  void fail_by_follower();
  void look_for_aborts();
  void look_for_absent_ranks();
  void look_for_absent_ranks(RunningJob& job);

  // The first failure decides the exit status and is told; later ones follow from it.
  void fail(RunningJob& job, int rank, const std::string& cause, int status, bool ends_jobs);
  void fail(const Head::Failure& failure, int others); // that are alive
  // Lets those that wait in MPI flush their streams, for a moment; then the signals.
  void end_ranks();
  void terminate_ranks();
  void exchange();
  void say(const std::string& sentence);
  [[nodiscard]] RunningJob& first_job() const { return *jobs_.front(); }
  [[nodiscard]] int alive() const;
  // ... of jobs but the first.
  [[nodiscard]] int alive_spawned() const { return alive() - first_job().alive(); }
  [[nodiscard]] std::vector<Questioned*> questioned() const;
  [[nodiscard]] std::string hint_for_memory(int signal) const;

  void take_look();
  void give_job_reports();
  // Waits until all is written, unless it was told to end.
  void flush();
  void look_for_lost_output();

  RunningJob& launch(std::vector<Program> programs, const SpawnParent& parent, int number,
                     const Gate& gate) override;
  RunningJob* find_job(int number) override;
  RunningJob* find_job(const boot::Secret& secret) override;
  void settle(int job, bool is_kept) override;
  [[nodiscard]] std::string variable(const Program& program, const char* name) const override;
  [[nodiscard]] std::string why_not_started(const RunningJob& job, int rank) const override;
  [[nodiscard]] Links::Own link_settings() const override;

  const Options& options_;
  Head* const head_; // null: the job is on this machine only
  const Signals signals_;
  Outlet out_, error_;
  RankOutput output_{out_, error_};
  TerminalInput input_;
  Descendants descendants_;
  std::optional<Watchdog> watchdog_;

  std::uint64_t ends_before_ = 0; // for want of memory
  Jobs jobs_;                     // the first one first; others until they have ended
  int last_number_ = 1;
  std::set<std::string> emptied_; // names of files that ranks append their output to
  std::string reports_;           // of jobs that have ended
  Services services_;
  bool failed_ = false;
  bool ending_ = false;
  int status_ = 0;
  int interrupts_ = 0;
  sigset_t passed_on_; // of the user's
  int end_signal_ = 0; // the last one passed on of those that users end programs with
  bool lost_output_told_ = false;
  bool first_job_ended_ = false; // and its ports are closed
  std::optional<Follower> follower_;
  std::map<int, Head::Failure> failed_in_spawn_; // by job: a rank of it, and the spawn is not over
  Deadline timeout_, terminate_, kill_, blame_, answer_until_;
  HangWatch hang_watch_;
  bool locating_ = false; // ranks, for the head
};

} // namespace macadam::tools
