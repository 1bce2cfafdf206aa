// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/error.h"
#include "base/object.h"
#include "base/relax.h"
#include "base/settings.h"
#include "boot/job.h"
#include "coll/comm.h"
#include "datatype/op.h"
#include "datatype/type.h"
#include "engine/engine.h"
#include "mpi/attributes.h"
#include "mpi/communicator.h"
#include "mpi/errhandler.h"
#include "mpi/fortran.h"
#include "mpi/handle_table.h"
#include "mpi/info.h"
#include "mpi/lock.h"
#include "mpi/requests.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace macadam::mpi {

struct Tool;
struct Windows;

// Where a process gets its job and its network from: this machine (mpi/network.h), or the
// simulator.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual std::unique_ptr<boot::Job> join() = 0;
  // Nearest first, as in engine::Networks; later ones may need the earlier, so they go in the other
  // order. `settings` live as long as the process. Called after join().
  virtual std::vector<std::unique_ptr<engine::Transport>>
  make_transports(const base::Settings& settings) = 0;
};

// Everything one MPI process is: its place in the job, its engine, MPI's objects. One in a program;
// many in the simulator, where the scheduler sets `running` before it runs a rank.
class Process {
 public:
  enum class Phase : std::uint8_t { before_init, initialized, finalized };

  Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // The object behind a handle of the standard ABI: a predefined one by its constant, any other by
  // its address. Null if it is none of this kind (MPI_*_NULL, freed, another kind).
  template <class T>
  [[nodiscard]] T* find(const void* handle, base::ObjectKind kind) const {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    base::Object* object;
    if (value < predefined.size()) {
      object = predefined[value];
      if (object == nullptr) [[unlikely]]
        return nullptr;
    } else {
      if (value % alignof(base::Object*) != 0) [[unlikely]]
        return nullptr;
      object = reinterpret_cast<base::Object*>(value);
    }
    return object->kind == kind ? static_cast<T*>(object) : nullptr;
  }

  // Waits until `done()` is true, making progress. `done` is called under the lock. A wait for what
  // wakes nobody sleeps for `longest_us` at a time.
  static constexpr unsigned longest_sleep_us = 100'000;
  template <class Done>
  [[gnu::always_inline]] void wait_until(Done&& done, unsigned longest_us = longest_sleep_us) {
    if (done()) return;
    unsigned fruitless = 0;
    bool idled = false;
    for (;;) {
      const bool moved = engine->progress();
      if (done()) break;
      if (moved) {
        fruitless = 0;
      } else if (fruitless++ < polls_before_idle_) {
        base::relax();
      } else {
        idle(fruitless - polls_before_idle_, longest_us);
        idled = true;
      }
    }
    if (idled) engine->networks().resume();
  }

  // Sends partitions that threads without the lock left to its holder (mpi/partitioned.cc). To be
  // called by a thread that has just let the lock go.
  [[gnu::always_inline]] void post_left() noexcept {
    if (marks_partitions.load(std::memory_order_relaxed)) [[unlikely]]
      post_left_partitions();
  }
  std::atomic<bool> marks_partitions = false; // there are, or were, partitioned sends
  std::atomic<bool> left_partitions = false;  // see above

  // One look for MPI_Test, MPI_Iprobe and their like. Programs call them in loops, which may hang
  // as a wait may, and which other ranks may share their core with: now and then a look that finds
  // nothing does what a wait does.
  void look() {
    if (engine->progress()) {
      vain_looks_ = 0;
    } else if (++vain_looks_ % looks_before_idle == 0) [[unlikely]] {
      idle(1, longest_sleep_us);
      engine->networks().resume();
    }
  }

  // Which networks there are is known: by the nearest of them the process waits.
  void take_networks(std::vector<std::unique_ptr<engine::Transport>> nearest_first) {
    transports = std::move(nearest_first);
    polls_before_idle_ = nearest().limits().polls_before_idle;
  }

  // Keeps the time, and has the memory that MPI_Alloc_mem gives out.
  [[nodiscard]] engine::Transport& nearest() const { return *transports.front(); }

  // One turn of a wait that found nothing: answers a request for the hang report, gives the lock to
  // other threads, sleeps by the transport's rules. Out of line: mpi/wait.cc.
  void idle(unsigned fruitless, unsigned longest_us);

  Phase phase = Phase::before_init;
  bool thread_multiple = false; // then `lock` is taken at every entry, else where MPI asks for it
  Lock lock;
  int thread_level = MPI_THREAD_SINGLE;
  std::thread::id main_thread;
  const char* function = ""; // the entry point being waited in, for the hang report

  // Objects behind the constants of the ABI, by value; those of communicators exist while
  // initialized.
  std::array<base::Object*, 0x400> predefined = {};

  datatype::PredefinedTypes types;
  datatype::PredefinedOps ops;

  base::Settings settings;
  bool settings_read = false;
  std::vector<std::string> settings_warnings; // for rank 0 to print
  base::CounterList counters;
  std::unique_ptr<boot::Job> job;
  Surroundings* surroundings = nullptr; // null until MPI_Init: this machine's
  std::unique_ptr<Surroundings> own_surroundings;
  std::vector<std::unique_ptr<engine::Transport>> transports; // see Surroundings
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<coll::Resources> coll;
  Communicator* world = nullptr;
  Communicator* self = nullptr;
  bool self_has_errhandler = false; // set by the program
  pid_t forked_from = 0; // in a process that a fork has made after MPI_Init: what made it

  // A context that no communicator of the job has had: the caller's word as leader of a new one.
  std::uint64_t new_context();

  // Objects that users hold handles of. The slabs keep freed ones readable, so that a stale handle
  // is recognised.
  base::Slab<Communicator> communicators;
  base::List<Communicator> live_communicators;
  base::Slab<Group> groups;
  base::Slab<Info> infos;
  base::Slab<Errhandler> errhandlers;
  Group empty_group;
  Info info_env;
  Errhandler errors_are_fatal{Errhandler::Action::fatal, MPI_ERRORS_ARE_FATAL};
  Errhandler errors_abort{Errhandler::Action::abort, MPI_ERRORS_ABORT};
  Errhandler errors_return{Errhandler::Action::return_code, MPI_ERRORS_RETURN};
  ErrorCodes error_codes;
  Keyvals keyvals;
  PredefinedAttributes attribute_values;
  // Handles of a datatype beyond its first, given out by MPI_Type_get_contents: freeing one of them
  // does not end the type's attributes.
  std::map<const datatype::Type*, int> more_type_handles;
  // What MPI_Type_create_f90_* has given out, by combiner and arguments.
  std::map<std::pair<int, std::vector<int>>, datatype::TypeRef> f90_types;
  HandleTable handles;
  HandleTable anytime_handles; // of info objects, error handlers and sessions
  FortranFacts fortran;
  std::unordered_set<void*> shared_allocations; // of MPI_Alloc_mem, in nearest()'s memory
  Requests requests;
  std::unique_ptr<Windows> windows;        // never null
  std::unique_ptr<Tool> tool;              // while MPI_T is initialised
  std::deque<std::uint64_t> last_counters; // behind `counters` after MPI_Finalize

 private:
  [[gnu::cold]] void write_hang_report();
  [[gnu::noinline]] void post_left_partitions() noexcept;
  [[gnu::noinline]] void idle_among_threads(unsigned fruitless, unsigned longest_us);

  unsigned polls_before_idle_ = 0; // of the nearest network
  static constexpr unsigned looks_before_idle = 16;
  unsigned vain_looks_ = 0;
  std::uint32_t contexts_ = 2; // 0: MPI_COMM_SELF; 1, of rank 0: MPI_COMM_WORLD
};

// The library's lock, where MPI wants thread safety at every level.
class Held {
 public:
  explicit Held(Process& self) : self_(self) { self.lock.lock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    self_.lock.unlock();
    self_.post_left();
  }

 private:
  Process& self_;
};

// The process between MPI_Init and MPI_Finalize, else null: what every entry point looks at first.
extern Process* running;

// The process for functions that may be called at any time; made at the first use, unless the
// simulator has set it.
Process& anytime();
extern Process* standing;

} // namespace macadam::mpi
