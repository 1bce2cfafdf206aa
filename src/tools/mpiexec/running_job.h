// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/hang/stacks.h"
#include "boot/job_memory.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/questioned.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace macadam::tools {

// Tells each rank of the job which program is its own: they are numbered program by program.
// `counts`: how many ranks each program has, on all machines.
void number_programs(const boot::JobMemory& memory, const std::vector<int>& counts);

// What processes get for it before they are ended.
inline constexpr std::chrono::milliseconds time_to_flush{200};

// A job of this mpiexec: that of its command line, which is the first, or one that ranks have
// spawned. Ranks are those of this machine.
class RunningJob final : public Questioned {
 public:
  // The process that has spawned it.
  struct Parent {
    int job; // its number
    int rank;
  };

  // `programs` are those of the ranks of this machine, in their order; of all ranks the memory
  // knows which is theirs.
  RunningJob(int number, std::vector<Program> programs, boot::JobMemory memory,
             std::optional<Parent> parent = {});
  // A program that was started alone, which is no child of mpiexec. `process` is a descriptor of it
  // (pidfd), and is taken over.
  RunningJob(boot::JobMemory memory, pid_t pid, int process);
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;
  ~RunningJob();

  [[nodiscard]] int number() const override { return number_; }
  [[nodiscard]] const boot::JobMemory& memory() const { return memory_; }
  [[nodiscard]] boot::JobMemory& memory() { return memory_; }
  [[nodiscard]] const Program& program_of(int rank) const {
    return programs_[static_cast<std::size_t>(memory_.row(rank).app)];
  }
  // Ranks by their places on this machine.
  [[nodiscard]] int count() const { return static_cast<int>(memory_.own_node().ranks); }
  [[nodiscard]] int rank_at(int place) const {
    return static_cast<int>(memory_.members()[static_cast<std::size_t>(place)]);
  }

  // "rank 1 on host a", "rank 1 of job 2 (spawned by rank 0) on host a".
  [[nodiscard]] std::string name(int rank) const;
  [[nodiscard]] const std::string& of_job() const override { return of_job_; }
  [[nodiscard]] std::string where() const override;
  // Before a rank's lines: "1", "2:1".
  [[nodiscard]] std::string label(int rank) const;

  // Processes of ranks, in their order. 0: not started, or it has ended.
  void add(pid_t pid);
  [[nodiscard]] pid_t pid(int rank) const {
    return pids_[static_cast<std::size_t>(memory_.local_index(rank))];
  }
  [[nodiscard]] int started() const { return static_cast<int>(pids_.size()); }
  [[nodiscard]] int alive() const { return alive_; }
  // The rank whose process this was, which is noted; nothing if it is none of this job.
  std::optional<int> note_end(pid_t pid);
  void signal(int rank, int number) const;
  void signal_all(int number) const;

  // A program that was started alone: becomes readable when it has ended. -1: there is none.
  [[nodiscard]] int process() const { return process_; }
  [[nodiscard]] bool is_lone() const { return process_ >= 0; }

  // How its processes end is of no interest any more: the job was called off. They are killed, but
  // those that have called MPI_Abort may flush their streams before.
  [[nodiscard]] bool is_abandoned() const { return abandoned_; }
  void abandon();
  // When these have had time for it; kill_abandoned() is due then.
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::optional<Clock::time_point> kill_at() const { return kill_at_; }
  void kill_abandoned();
  // As abandon() for processes that wait at a gate, and end at once: none is left.
  void abandon_and_reap();
  // It is not known of all processes yet whether they could be started.
  bool is_starting = false;

  void ask_for_reports() override;
  [[nodiscard]] bool all_have_answered() const override;
  [[nodiscard]] std::vector<RankStatus> look() const override { return boot::look_at(memory_); }
  void ask_for_stacks(const std::vector<int>& ranks) override;
  [[nodiscard]] bool stacks_are_known() override { return !stacks_ || stacks_->are_known(); }
  [[nodiscard]] std::map<int, std::string> stacks() const override;
  // What its ranks have left at their ends.
  [[nodiscard]] std::map<int, std::string> final_reports() const;
  // The page about what it did (boot/job_report.h); empty if no rank has left anything.
  [[nodiscard]] std::string report() const;

 private:
  int number_;
  std::string of_job_;
  std::vector<Program> programs_;
  boot::JobMemory memory_;
  std::vector<pid_t> pids_; // by place among this machine's ranks
  int alive_ = 0;
  int process_ = -1;
  bool abandoned_ = false;
  std::optional<Clock::time_point> kill_at_;
  std::optional<boot::Stacks> stacks_;
};

using Jobs = std::vector<std::unique_ptr<RunningJob>>;

} // namespace macadam::tools
