// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "boot/launched_job.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace macadam::boot {

class LauncherClient;
class LocalUniverse;
class TimeLimit;

// The environment variable by which mpiexec tells a rank who it is: "FD:RANK", the descriptor of
// the job's memory and the rank. A user may set it to "alone".
inline constexpr const char* job_variable = "MACADAM_JOB";

// The job of mpiexec, or of one process; or that of another launcher, whose ranks on one machine
// share the same memory (launcher_client.h).
class LocalJob final : public LaunchedJob {
 public:
  // Learns from mpiexec who this process is: from the variable, or, where the environment was
  // cleared, from the descriptor that it has inherited. A program started alone becomes a job of
  // one and opens nothing. Throws MPI_ERR_OTHER when mpiexec's message is damaged, when the rank is
  // taken by another process, or when another launcher started several processes that would all be
  // alone.
  static LocalJob join();

  // Only before universe() is asked for.
  LocalJob(LocalJob&&) noexcept;
  ~LocalJob() override;

  // With several machines there is one generation: only MPI_Finalize, where all meet, ends it.
  std::uint32_t enter() override;
  void leave() override;
  [[nodiscard]] bool is_over(std::uint32_t generation) const override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return memory_.size(); }
  [[nodiscard]] int ranks_of_program() const override;
  [[nodiscard]] Secret secret() const override { return memory_.header().secret; }
  [[nodiscard]] std::uint32_t generation() const override { return generation_; }
  [[nodiscard]] bool alone() const override { return alone_; }
  [[nodiscard]] int app_number() const override { return own_row().app; }
  [[nodiscard]] std::string_view host() const override { return memory_.own_node().host.data(); }
  [[nodiscard]] std::string_view host_of(int rank) const override { return memory_.host_of(rank); }
  [[nodiscard]] int node(int rank) const override {
    return static_cast<int>(memory_.node_of(rank));
  }
  [[nodiscard]] std::vector<ProcessSet> process_sets() const override;
  // None with a launcher that is not mpiexec.
  [[nodiscard]] Universe* universe() override;
  [[nodiscard]] std::string_view other_host() const override {
    return memory_.header().other_host.data();
  }
  [[nodiscard]] bool one_clock() const override { return memory_.header().nodes == 1; }
  [[nodiscard]] int cores() const override { return static_cast<int>(memory_.header().cores); }

  void publish(std::span<const std::byte> endpoint_address) override;
  void refuse_strangers() override;
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override;
  [[nodiscard]] std::optional<Agreement> agreement_of(int rank) const override {
    return memory_.agreement_of(rank, generation_);
  }

  [[nodiscard]] int local_size() const override {
    return static_cast<int>(memory_.own_node().ranks);
  }
  [[nodiscard]] int local_rank() const override { return memory_.local_index(rank_); }
  [[nodiscard]] int neighbour(int index) const override {
    return static_cast<int>(memory_.members()[static_cast<std::size_t>(index)]);
  }
  [[nodiscard]] bool is_local(int rank) const override { return memory_.is_local(rank); }
  [[nodiscard]] SharedMemory own_memory() override;
  [[nodiscard]] SharedMemory memory_of(int rank) const override;
  // Nobody uses this process's memory any more: its pages go back, and it is as at first.
  void clear_memory();
  std::string promise(std::uint64_t bytes) override;
  void withdraw(std::uint64_t bytes) override { memory_.header().promised.fetch_sub(bytes); }
  [[nodiscard]] pid_t pid(int rank) const override { return memory_.row(rank).pid; }

  // As far as mpiexec has seen, and the rank has said itself. Another launcher does not always tell
  // of ranks of other machines.
  [[nodiscard]] Life life(int rank) const override {
    const Life seen = memory_.life(rank, generation_);
    return client_ && seen == Life::running && !is_local(rank) ? Life::unknown : seen;
  }
  [[nodiscard]] unsigned failures() const override;
  void give_up() override;

  void barrier(const std::function<void()>& idle) override;
  void barrier() { barrier({}); }
  void finalize() override;

  [[nodiscard]] bool report_wanted() const override {
    return memory_.header().reports_wanted.load(std::memory_order_relaxed) !=
           own_row().report_answered.load(std::memory_order_relaxed);
  }
  void write_report(std::string_view json) const override { put_report(ReportKind::hang, json); }
  void write_final_report(std::string_view json) override;
  [[nodiscard]] bool is_ending() const override {
    return memory_.header().ending.load(std::memory_order_relaxed) != 0;
  }

 private:
  LocalJob(JobMemory memory, int rank, bool alone);
  // Empty if no other launcher that we can talk to has started this process.
  static std::optional<LocalJob> join_by_client();
  // As this rank, which is taken by it.
  static LocalJob take(JobMemory memory, int rank);

  void end_job(int code, std::string_view text, Blame blame) override;
  [[nodiscard]] RankRow& own_row() const { return memory_.row(rank_); }
  // Where its processes may be met from, if not where they are.
  [[nodiscard]] bool has_other_machines() const {
    return memory_.header().nodes > 1 || !other_host().empty();
  }
  void wait_for_all_nodes(const std::function<void()>& idle);
  void wait_for_ranks(const std::function<void()>& idle); // with an mpiexec, of all nodes
  // Whether rank 0 prints the reports of all machines, as no mpiexec does.
  [[nodiscard]] bool merges_reports() const {
    return client_ && memory_.header().merges_reports != 0;
  }
  // Takes part in that: all ranks do.
  void merge_reports();
  [[nodiscard]] std::map<int, std::string> reports_here() const;
  [[nodiscard]] std::map<int, std::string> reports_of(std::uint32_t node);
  void print_reports() const;
  void put_report(ReportKind kind, std::string_view json) const;
  void report_waiting(std::string_view function, std::string_view what) const;

  JobMemory memory_;
  int rank_;
  bool alone_;
  std::uint32_t generation_ = 1;           // that this process has entered last
  bool parted_ = false;                    // has left barrier()
  std::unique_ptr<LauncherClient> client_; // of a launcher that is not mpiexec
  std::chrono::steady_clock::time_point start_{std::chrono::steady_clock::now()};
  std::unique_ptr<TimeLimit> time_limit_;   // with such a launcher, while it is in MPI
  std::unique_ptr<LocalUniverse> universe_; // once it was asked for
};

} // namespace macadam::boot
