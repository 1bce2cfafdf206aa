// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/error.h"
#include "base/object.h"
#include "base/settings.h"
#include "base/slab.h"
#include "boot/launched_job.h"
#include "datatype/op.h"
#include "datatype/type.h"
#include "mpi/attributes.h"
#include "mpi/communicator.h"
#include "mpi/errhandler.h"
#include "mpi/fortran.h"
#include "mpi/handle_table.h"
#include "mpi/info.h"
#include "mpi/jobs.h"
#include "mpi/lock.h"
#include "mpi/profile.h"
#include "mpi/session.h"
#include "mpi/trace.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace macadam::mpi {

class Runtime;
struct Tool;

// What of MPI is there at any time, from a process's first call to its end: the objects that need
// no network (info objects, error handlers, sessions, groups, datatypes, operations), the settings,
// and who this process is. The other lifetimes are Instance and World; Process has all three.
//
// Its lock is taken by every function that MPI wants to be thread-safe at any thread level, and at
// MPI_THREAD_MULTIPLE by all others too.
class Library {
 public:
  Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  // The object behind a handle of the standard ABI: a predefined one by its constant, any other by
  // its address. Null if it is none of this kind (MPI_*_NULL, freed, another kind).
  template <class T>
  [[nodiscard]] T* find(const void* handle, base::ObjectKind kind) const {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    base::Object* object;
    if (value < predefined.size()) {
      object = predefined[value];
    } else {
      if (value % alignof(base::Object*) != 0) [[unlikely]]
        return nullptr;
      object = reinterpret_cast<base::Object*>(value);
    }
    return object->kind == kind ? static_cast<T*>(object) : nullptr;
  }

  // Sends partitions that threads without the lock left to its holder (mpi/partitioned.cc). To be
  // called by a thread that has just let the lock go.
  [[gnu::always_inline]] void post_left() noexcept {
    if (marks_partitions.load(std::memory_order_relaxed)) [[unlikely]]
      post_left_partitions();
  }
  std::atomic<bool> marks_partitions = false; // there are, or were, partitioned sends
  std::atomic<bool> left_partitions = false;  // see above

  // Takes the settings from the environment, once in a process.
  void read_settings();
  // Learns who this process is, at the first call: after that there is a `job`. Takes no part in it
  // yet. Throws base::Error.
  void join_job();

  // One more user of MPI, one less. The first one's thread level is that of all, as others may be
  // in calls without the lock: admit_user() returns it.
  int admit_user(int wanted_level);
  void update_entry() {
    const bool traces = trace != nullptr && !trace->rests();
    entry_does_more.store(thread_multiple || profile != nullptr || traces,
                          std::memory_order_relaxed);
  }
  void dismiss_user();

  Lock lock;
  int thread_level = MPI_THREAD_SINGLE;
  bool thread_multiple = false; // then `lock` is taken at every entry, else where MPI asks for it
  bool keeps_lock = false;      // its holder must not let it go, see run_callback_locked()
  std::unique_ptr<Profile> profile; // from the first instance on of which a report is wanted
  std::unique_ptr<Trace> trace;     // ... of which one is wanted
  // For any of these: one look at every entry. An alarm may raise it.
  std::atomic<bool> entry_does_more = false;
  const char* function = ""; // the entry point being waited in, for the hang report
  // Of MPI: the world between MPI_Init and MPI_Finalize, and each session.
  std::atomic<int> users = 0;

  // Objects behind the constants of the ABI, by value; those of communicators exist while the world
  // does. All other values are of an object that nobody looks for, so that it takes no look of its
  // own to find that there is none.
  std::array<base::Object*, 0x400> predefined;
  base::Object no_object{base::ObjectKind::freed};

  datatype::PredefinedTypes types;
  datatype::PredefinedOps ops;

  base::Settings settings;
  bool settings_read = false;
  bool settings_used = false;                 // by an instance: most cannot be changed any more
  std::vector<std::string> settings_warnings; // for rank 0 to print
  base::CounterList counters;

  // Where the job and the networks come from: this machine (mpi/network.h) from the first use on,
  // unless the simulator has set its own.
  Runtime* runtime = nullptr;
  std::unique_ptr<boot::LaunchedJob> job; // null until join_job()
  Jobs jobs;                              // others
  pid_t own_process = 0;                  // which has joined it
  pid_t forked_from = 0; // in a process that a fork has made after MPI began: what made it

  // Objects that users hold handles of. The slabs keep freed ones readable, so that a stale handle
  // is recognised.
  base::Slab<Session> sessions;
  base::Slab<Group> groups;
  base::Slab<Info> infos;
  base::Slab<Errhandler> errhandlers;
  Group empty_group;
  Info info_env;
  Errhandler errors_are_fatal{Errhandler::Action::fatal, MPI_ERRORS_ARE_FATAL};
  Errhandler errors_abort{Errhandler::Action::abort, MPI_ERRORS_ABORT};
  Errhandler errors_return{Errhandler::Action::return_code, MPI_ERRORS_RETURN};
  Errhandler* errors_of_files = &errors_return; // of MPI_FILE_NULL
  ErrorCodes error_codes;
  Keyvals keyvals;
  PredefinedAttributes attribute_values;
  // What MPI_Type_create_f90_* has given out, by combiner and arguments.
  std::map<std::pair<int, std::vector<int>>, datatype::TypeRef> f90_types;
  HandleTable handles;
  HandleTable anytime_handles; // of info objects, error handlers and sessions
  FortranFacts fortran;
  std::unique_ptr<Tool> tool; // while MPI_T is initialised

 private:
  [[gnu::noinline]] void post_left_partitions() noexcept;

  std::unique_ptr<Runtime> own_runtime_;
};

// The library's lock, where MPI wants thread safety at every level.
class Held {
 public:
  explicit Held(Library& self) : self_(self) { self.lock.lock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    self_.lock.unlock();
    self_.post_left();
  }

 private:
  Library& self_;
};

// The library's lock let go, if this thread has it, while it does what may wait for other threads:
// sleeps, or runs a callback of the program. Not within progress.
class LetGo {
 public:
  explicit LetGo(Library& self) : self_(self), is_mine_(self.lock.is_mine() && !self.keeps_lock) {
    if (!is_mine_) return;
    // Below MPI_THREAD_MULTIPLE these are of a call that has not taken the lock.
    if (self_.thread_multiple) {
      function_ = self_.function;
      if (self_.profile != nullptr) call_ = self_.profile->suspend();
    }
    depth_ = self_.lock.release();
    self_.post_left();
  }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;
  ~LetGo() {
    if (!is_mine_) return;
    self_.lock.retake(depth_);
    if (function_ == nullptr) return;
    self_.function = function_;
    if (self_.profile != nullptr) self_.profile->resume(call_);
  }

 private:
  Library& self_;
  const bool is_mine_;
  const char* function_ = nullptr;
  Profile::Call* call_ = nullptr;
  unsigned depth_ = 0;
};

} // namespace macadam::mpi
