// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/relax.h"
#include "base/slab.h"
#include "boot/launched_job.h"
#include "boot/processes.h"
#include "coll/comm.h"
#include "engine/engine.h"
#include "mpi/communicator.h"
#include "mpi/file.h"
#include "mpi/invitation.h"
#include "mpi/profile.h"
#include "mpi/requests.h"
#include "mpi/trace.h"
#include "mpi/window.h"

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

namespace macadam::mpi {

class Process;

// Where a process gets its job and its networks from: this machine (mpi/network.h), or the
// simulator.
class Runtime {
 public:
  virtual ~Runtime() = default;
  // Once in a process: who it is.
  virtual std::unique_ptr<boot::LaunchedJob> join() = 0;
  // For one instance, which has entered the job. Nearest first, as in engine::Networks; later ones
  // may need the earlier, so they go in the other order. `settings` live as long as the process.
  virtual std::vector<std::unique_ptr<engine::Transport>>
  make_transports(const base::Settings& settings) = 0;
  // One more network, for one of those instances, which reaches the processes of a job that are on
  // other machines; null: those that there are do, or others see to it. `nearest` is the
  // instance's. Throws base::Error.
  virtual std::unique_ptr<engine::Transport> open_network(const base::Settings& /*settings*/,
                                                          engine::Transport& /*nearest*/,
                                                          const boot::Job& /*job*/) {
    return nullptr;
  }
  // Those that this process knows. After join().
  [[nodiscard]] virtual boot::Processes& processes() = 0;
  // The transports are gone, and what they stood on goes too.
  virtual void close() {}
  // False where time is virtual, so that a trace takes none.
  [[nodiscard]] virtual bool has_real_time() const { return true; }
};

// The networks of one instance, nearest first. They end from the last to the first.
class Transports {
 public:
  Transports(Runtime& runtime, const base::Settings& settings)
      : runtime_(runtime), list_(runtime.make_transports(settings)) {}
  Transports(const Transports&) = delete;
  Transports& operator=(const Transports&) = delete;
  ~Transports() {
    while (!list_.empty())
      list_.pop_back();
    runtime_.close();
  }
  [[nodiscard]] auto begin() const { return list_.begin(); }
  [[nodiscard]] auto end() const { return list_.end(); }
  engine::Transport& add(std::unique_ptr<engine::Transport> farthest) {
    return *list_.emplace_back(std::move(farthest));
  }

 private:
  Runtime& runtime_;
  std::vector<std::unique_ptr<engine::Transport>> list_;
};

// Whoever wants to be told what the engine does.
class Observers final : public engine::Observer {
 public:
  // Either may be null.
  Observers(Profile* profile, Trace* trace) : profile_(profile), trace_(trace) {}
  // What the engine is to be given; null if nobody wants it.
  [[nodiscard]] engine::Observer* observer() {
    return profile_ != nullptr || trace_ != nullptr ? this : nullptr;
  }
  void on_step(const engine::Step& step) noexcept override {
    if (profile_ != nullptr) profile_->on_step(step);
    if (trace_ != nullptr) trace_->on_step(step);
  }

 private:
  Profile* const profile_;
  Trace* const trace_;
};

// A probe that waits for a message; for pages about jobs that hang.
struct BlockingProbe : base::ListNode<> {
  BlockingProbe(const Communicator& its_comm, int its_source, int its_tag)
      : comm(its_comm), source(its_source), tag(its_tag) {}
  ~BlockingProbe() { unlink(); }
  const Communicator& comm;
  const int source, tag;
};

// One time that a process takes part in its job: the networks, the engine, and the objects that
// need them. Begun by MPI_Init or by the first call of a session that needs a network; ends with
// the last user, and another may begin later. start() and end() below say when exactly.
class Instance {
 public:
  // Makes transports and engine. Throws base::Error. `entered` is what boot::LaunchedJob::enter()
  // said.
  Instance(Process& process, std::uint32_t entered);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  // The way back, once nothing is in flight that this process waits for.
  ~Instance();

  // Waits until `done()` is true, making progress. `done` is called under the lock. A wait for what
  // wakes nobody sleeps for `longest_us` at a time.
  static constexpr unsigned longest_sleep_us = 100'000;
  template <class Done>
  [[gnu::always_inline]] void wait_until(Done&& done, unsigned longest_us = longest_sleep_us) {
    if (done()) return;
    unsigned fruitless = 0;
    bool idled = false;
    for (;;) {
      bool moved = engine->deliver();
      const bool may_copy = !moved && engine->may_copy();
      if (may_copy) [[unlikely]] {
        moved = engine->copy_in_wait(fruitless);
        idled = true;
      }
      if (done()) break;
      if (moved) {
        fruitless = 0;
        files.collect();
      } else if (may_copy && shares_cores_ && fruitless > 0) {
        ++fruitless;
        give_turn();
      } else if (const unsigned polls = polls_before_idle(); fruitless++ < polls || may_copy) {
        base::relax();
      } else {
        idle(fruitless - polls, longest_us);
        idled = true;
      }
    }
    if (idled) engine->networks().resume();
  }

  // What ends a call: all operations of its list, or one.
  enum class Awaits : std::uint8_t { all, any };
  // The same for a call that waits for operations of the user's. Sends among them leave copies
  // behind after some looks (engine::Engine::leave()), if that ends the call.
  template <class Done>
  [[gnu::always_inline]] void wait_or_leave(std::span<const MPI_Request> waited, Awaits awaits,
                                            Done&& done) {
    const unsigned patience = shares_cores_ ? looks_with_a_turn : looks_before_leaving;
    unsigned looks = 0;
    wait_until([&] {
      if (done()) return true;
      if (++looks % patience != 0) [[likely]]
        return false;
      leave(waited, awaits);
      return done();
    });
  }

  // One look for MPI_Test, MPI_Iprobe and their like. Programs call them in loops, which may hang
  // as a wait may, and which other ranks may share their core with: now and then a look that finds
  // nothing does what a wait does.
  void look(std::span<const MPI_Request> tested = {}, Awaits awaits = Awaits::all) {
    files.collect();
    if (engine->progress()) {
      vain_looks_ = 0;
      return;
    }
    if (++vain_looks_ >= looks_before_leaving && !tested.empty()) [[unlikely]]
      leave(tested, awaits);
    if (vain_looks_ % looks_before_idle == 0) [[unlikely]] {
      idle(1, longest_sleep_us);
      engine->networks().resume();
    }
  }

  // Opens the network that the processes of another job need, unless it is open. Throws
  // base::Error.
  void reach(const boot::Job& job);

  // Keeps the time, and has the memory that MPI_Alloc_mem gives out.
  [[nodiscard]] engine::Transport& nearest() const { return **transports.begin(); }

  // A context that no communicator has had: the caller's word as leader of a new one, `joint` if it
  // may have processes of several jobs.
  std::uint64_t new_context(bool joint = false);

  const std::uint32_t generation; // of the job's, see boot::LaunchedJob

  Transports transports;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<coll::Resources> coll;
  base::Slab<Communicator> communicators;
  base::List<Communicator> live_communicators;
  std::unordered_set<void*> shared_allocations; // of MPI_Alloc_mem, in nearest()'s memory
  Requests requests;
  Windows windows;
  Files files;
  Invitations invitations;
  std::vector<const Gathering*> gatherings;
  base::List<BlockingProbe> probes;

 private:
  // Looks that find nothing before a wait gives its core away. On shared cores a message's sender
  // likely needs just this one; the words of a collective are written at about the same time by
  // all.
  [[nodiscard]] unsigned polls_before_idle() const {
    return shares_cores_ && !engine->waits_for_word() ? 0 : polls_before_idle_;
  }

  // One turn of a wait that found nothing: answers a request for the hang report, gives the lock to
  // other threads, sleeps by the transport's rules. Out of line: mpi/wait.cc.
  void idle(unsigned fruitless, unsigned longest_us);
  void give_turn();
  [[gnu::cold]] void write_hang_report();
  [[gnu::cold]] void leave(std::span<const MPI_Request> waited, Awaits awaits);
  [[gnu::noinline]] void idle_among_threads(unsigned fruitless, unsigned longest_us);

  Process& process_;
  Observers observers_;
  unsigned polls_before_idle_ = 0; // of the nearest network, as the next
  bool shares_cores_ = false;
  static constexpr unsigned looks_before_idle = 16;
  // A microsecond or two, in which a receiver that waits has answered; where ranks share cores, a
  // turn of the others on this one.
  static constexpr unsigned looks_before_leaving = 64;
  static constexpr unsigned looks_with_a_turn = 3;
  unsigned vain_looks_ = 0;
  std::uint32_t contexts_ = 2;       // 0: MPI_COMM_SELF; 1, of rank 0: MPI_COMM_WORLD
  std::uint32_t joint_contexts_ = 1; // 0: of leaders that meet, see joint.cc
};

// A user of MPI needs the network: there is an instance afterwards, and `running` is this process.
// One that has gone to sleep (see end()) and is of the job's present generation goes on where it
// was; any other gives way to a new one. Throws base::Error; then there is none.
void start(Process& self);

// What this process has sent is out of its hands afterwards.
void settle(Process& self);

// After settle(): the last user of the instance leaves the job. From now on the others may begin
// another life, so this process writes to none of their boards any more; and calls of its own other
// threads wait in start() for the end.
void leave(Process& self);
// The same if the caller is the last user, which end() is to follow; says whether it is.
[[nodiscard]] bool leave_if_last(Process& self);

// The last user of the instance has left, after settle() and leave(). The
// instance ends if the whole job has left. Until then others may have its memory mapped and
// connections to it, so it stays as it is, asleep, for start() to find or for the process's end.
void end(Process& self);

} // namespace macadam::mpi
