// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "sim/fabric.h"
#include "sim/launcher.h"
#include "sim/rank.h"
#include "sim/scheduler.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace macadam::sim {

struct WorldOptions {
  int ranks = 2; // of each job
  int jobs = 1;
  int ranks_per_node = 1;
  int ports = 1;         // of each node, which its ranks share in turn
  bool dealt = false;    // ranks to nodes one by one in turn, else node by node
  bool one_node = false; // has all jobs; else each job has its own
  Model model;
  Faults faults;
  std::uint64_t seed = 1;
  std::optional<base::Settings> settings; // of all ranks; none: from the environment variables
  std::size_t stack_bytes = 256 << 10;    // of each rank
  ComputeTimes* compute_times = nullptr;  // null: what a program computes takes no virtual time
  int room = 1 << 30;                     // processes that may run at a time, of all jobs
  // The program that a spawned command names; throws base::Error (MPI_ERR_SPAWN) if there is none.
  // Not given: there is none at all.
  std::function<std::function<int(int rank)>(const boot::SpawnProgram&)> find_program;
  double quiet_s = 10; // virtual seconds without a message or computation until it counts as a hang
};

// How a simulated job ended.
struct Outcome {
  enum class End : std::uint8_t { finished, aborted, hung } end = End::finished;
  int exit_code = 0;       // the first that is not 0
  std::string text;        // why it was aborted, or what every rank waits for
  Time time = 0;           // virtual, of the last rank's end
  std::uint64_t trace = 0; // equal for equal runs
};

// A job of MPI processes, or several, on a simulated network, in one thread and in virtual time.
// Ranks share nothing but the launcher and the network.
class World {
 public:
  // The program of every rank of every job; returns its exit code. It may call MPI and everything
  // in sim/program_calls.h; what is thrown out of it ends the job.
  using Program = std::function<int(int rank)>;

  explicit World(WorldOptions options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Runs the program on all ranks. Once in a world. Throws base::Error where the simulated library
  // misuses the simulated device, or when there is no memory.
  Outcome run(const Program& program);

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }
  // Those of the first job come first.
  [[nodiscard]] Rank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int jobs() const { return static_cast<int>(launchers_.size()); }
  // JSON texts of a job's ranks that ended with MACADAM_REPORT set.
  [[nodiscard]] const std::vector<std::string>& final_reports(int job) const {
    return launchers_[static_cast<std::size_t>(job)]->final_reports;
  }

  // Called for every rank when its program has ended and before its memory goes.
  std::function<void(Rank&)> on_end;
  // Called now and then, for whoever waits for the end of run().
  std::function<void()> on_progress;

 private:
  int add_job(int ranks, std::optional<boot::Met> parent);
  int spawn(const std::vector<boot::SpawnProgram>& programs, const std::vector<int>& ranks,
            const boot::Met& parent);
  void start(int job, int number, int app_number, std::function<int()> body);
  void end(int job);
  bool hung() const;
  void destroy_ended();
  [[nodiscard]] std::string hang_report();

  WorldOptions options_;
  Scheduler scheduler_;
  Fabric fabric_;
  std::vector<std::unique_ptr<Launcher>> launchers_; // of each job
  Standing standing_;
  Random secrets_;
  int nodes_ = 0;              // of all jobs
  std::shared_ptr<Node> node_; // if it has all jobs
  std::size_t left_ = 0;       // ranks that have not ended
  Exchange exchange_;
  std::deque<Rank::Environment> environments_; // of each job
  std::vector<std::unique_ptr<Rank>> ranks_;
};

} // namespace macadam::sim
