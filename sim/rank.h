// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/processes.h"
#include "mem/invalidation.h"
#include "mpi/process.h"
#include "net/rdma/transport.h"
#include "sim/compute_times.h"
#include "sim/device.h"
#include "sim/fiber.h"
#include "sim/folder.h"
#include "sim/launcher.h"
#include "sim/processor.h"
#include "sim/universe.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace macadam::sim {

// What a rank looks like once its program has ended, or in the middle.
struct RankState {
  enum class Phase : std::uint8_t { not_started, running, ended } phase = Phase::not_started;
  int exit_code = 0;
  Time ended_at = 0;
};

// One simulated MPI process: its processor, its RDMA device, its MPI library, and a fiber in which
// its program runs. Everything that is global in a real process is switched with the fiber.
class Rank final : mpi::Runtime {
 public:
  struct Environment {
    Scheduler& scheduler;
    Fabric& fabric;
    const std::vector<std::unique_ptr<Launcher>>& launchers; // of all jobs
    int job;                                                 // this one
    Launcher& launcher;
    Standing& standing;
    Exchange& exchange;
    const base::Settings* settings; // null: from the environment variables
    std::size_t stack_bytes;
    int first; // of its ranks, in the world
    int size;
    int ranks_per_node;
    int ports;                       // of each node
    std::optional<boot::Met> parent; // of a job that was spawned
    ComputeTimes* compute_times;     // null: what a program computes takes no virtual time
    bool dealt;                      // as in WorldOptions
    bool one_node;                   // the same
  };
  // `body` is the program; its result is the exit code.
  Rank(const Environment& environment, int number, int app_number, std::function<int()> body);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() override;

  // Makes the process and runs its program from now on. Called by an event.
  void start();
  // Gives back what only a running program needs. Not from inside the fiber.
  void destroy();

  [[nodiscard]] int number() const { return number_; } // in its job
  [[nodiscard]] int job() const { return environment_.job; }
  // "rank 1", or "rank 1 of job 2" if there are several, counted as mpiexec counts them.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string host() const;
  [[nodiscard]] int node_of(int rank) const;
  [[nodiscard]] int index_on_node(int rank) const;
  [[nodiscard]] const RankState& state() const { return state_; }
  [[nodiscard]] mpi::Process* process() { return process_.get(); }
  [[nodiscard]] SimulatedDevice* device() { return device_ ? &*device_ : nullptr; }
  // Null if all ranks are on one node.
  [[nodiscard]] net::rdma::RdmaTransport* transport() { return transport_; }
  // Shared memory with the ranks of its node, null if it has none.
  [[nodiscard]] net::shm::Transport* neighbors() { return neighbors_; }
  [[nodiscard]] bool overflowed(const void* address) const {
    return fiber_ && fiber_->guards(address);
  }
  [[nodiscard]] std::size_t stack_touched() const { return fiber_ ? fiber_->touched_bytes() : 0; }

  // For the program of this rank, called inside its fiber.

  // The rank whose program runs; null outside of all.
  static Rank* current();
  [[nodiscard]] Time now() const { return processor_.now(); }
  void compute(Time duration);
  // The library's own work took so long.
  void charge(Time cost);
  // It has copied something there. What neighbours map they see when the next word is stored: not
  // before it was copied, by their clocks too.
  void copied_to(const void* place);
  // The program calls a function of the process's from this place, and comes back from it.
  void leave_program(const void* place);
  void enter_program();
  [[nodiscard]] int ranks_per_node() const { return environment_.ranks_per_node; }
  [[nodiscard]] int ports() const { return environment_.ports; } // of its node
  [[nodiscard]] const Model& model() const { return environment_.fabric.model(); }
  // One more adapter of this process, with a port of its own; goes before the rank does.
  [[nodiscard]] std::unique_ptr<SimulatedDevice> make_adapter();
  // Lets this process talk to another job of the world by the engine, without MPI. Returns the
  // index of that job's rank 0; the others follow. Between MPI_Init and MPI_Finalize.
  engine::Rank meet(int job);
  [[nodiscard]] boot::Processes& processes() override { return *processes_; }
  // Another job of the world as this rank sees it, the same at each call until look_away().
  const boot::Job& look_at(int job);
  [[nodiscard]] bool is_over(int job) const {
    return environment_.launchers.at(static_cast<std::size_t>(job))->running == 0;
  }
  void look_away(const boot::Job& job);
  // Ends its wait, if it is in one.
  void wake();
  // The process is killed at that time: in the wait that it is in, or comes to next.
  void kill_at(Time time);
  void end_if_killed() {
    if (killed_) exit(0);
  }
  // Takes a moment of the processor's, as a look at the clock does, and lets others go on.
  void tick();
  // Waits a little for something that is not of the simulated world, a descriptor.
  void nap();
  [[noreturn]] void exit(int code);
  // The file of its program, as the program asks for it; empty: it has none of its own.
  std::string executable;
  // As chdir(): the rank's folder alone.
  bool enter_folder(const char* path) { return folder_.enter(path); }

 private:
  class Job;
  class OtherJob;
  // The simulated adapter reads and writes memory by its address, as the processor does: what was
  // registered stays right when the program gives memory back and gets other memory there.
  class NothingGoesAway final : public mem::InvalidationSource {
   public:
    bool watch(const mem::Range&) override { return true; }
    bool take(mem::Range&) override { return false; }
  };
  // Switches what is global per process.
  class RankFiber final : public Fiber {
   public:
    RankFiber(Rank& rank, std::size_t stack_bytes, std::function<void()> body)
        : Fiber(stack_bytes, std::move(body)), rank_(rank) {}

   private:
    void switching_in() override;
    void switching_out() override;
    Rank& rank_;
  };

  // mpi::Runtime
  std::unique_ptr<boot::LaunchedJob> join() override;
  std::vector<std::unique_ptr<engine::Transport>>
  make_transports(const base::Settings& settings) override;

  std::unique_ptr<engine::Transport> open_network(const base::Settings& settings,
                                                  engine::Transport& nearest,
                                                  const boot::Job& job) override;
  std::unique_ptr<engine::Transport> make_network(const base::Settings& settings);
  void close() override;
  void clear_memory();
  [[nodiscard]] bool has_real_time() const override { return false; }
  [[nodiscard]] Node& node() const;
  [[nodiscard]] int place_on_node(int rank) const;

  void publish(std::span<const std::byte> address, const boot::Agreement& agreement);
  std::optional<std::span<const std::byte>> fetch(Launcher& launcher, int rank,
                                                  bool is_far = false);
  void barrier(const std::function<void()>& idle);
  void wait_for_all(const std::function<void()>& idle);

  const Environment& environment_;
  int number_;
  const int app_number_;
  std::function<int()> body_;
  RankState state_;
  bool killed_ = false;
  Folder folder_;
  Processor processor_;
  std::unique_ptr<RankFiber> fiber_; // first: objects on its stack may be linked in the others
  std::unique_ptr<SimulatedDevice> device_;
  std::unique_ptr<SimulatedDevice> second_device_; // null: its node has no port left for it
  std::optional<SimulatedSystem> system_;          // of a node with several ranks
  NothingGoesAway invalidation_;
  std::vector<std::unique_ptr<OtherJob>> others_;
  std::optional<boot::Processes> processes_; // while the job is joined
  std::unique_ptr<mpi::Process> process_;
  bool keeps_memory_ = false;                     // after the end, for other jobs
  net::rdma::RdmaTransport* transport_ = nullptr; // both owned by the process
  net::shm::Transport* neighbors_ = nullptr;
  mpi::Process* running_ = nullptr; // mpi::running while this rank stands
  int away_ = 0;                    // calls inside of each other
  std::uint64_t place_ = 0;         // in the program, of the outermost
  Time computes_since_ = 0;         // as ComputeTimes::now()
};

} // namespace macadam::sim
