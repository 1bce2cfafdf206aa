// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/errhandler.h"
#include "mpi/process.h"

#include <limits>
#include <optional>

namespace macadam::api {

// The library's lock during one MPI call, where the thread level asks for it, and its time, where a
// report or a trace is wanted. Let go before an error handler runs, so that the handler may call
// MPI.
class Entry {
 public:
  [[gnu::always_inline]] Entry(mpi::Library& self, const char* function) {
    if (self.entry_does_more.load(std::memory_order_relaxed)) [[unlikely]]
      do_more(self, function);
    self.function = function;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  [[gnu::always_inline]] ~Entry() {
    if (more_.has_value()) [[unlikely]]
      undo_more();
  }

 private:
  void do_more(mpi::Library& self, const char* function);
  void undo_more();

  // Not read from the library again: the call may change what is to be done.
  struct More {
    explicit More(mpi::Library& of) : self(of) {}
    mpi::Library& self;
    bool locked;
    mpi::Profile* profile;
    mpi::Profile::Call call;
    mpi::Trace* trace;
    mpi::Trace::Call traced;
  };
  std::optional<More> more_; // most calls make none
};

// The same for the functions that may be called at any time, which MPI wants to be thread-safe at
// every level. None of them is worth a word in the hang report.
class AnytimeEntry {
 public:
  explicit AnytimeEntry(mpi::Library& self) : held_(self) {}

 private:
  mpi::Held held_;
};

// Called in a catch block: passes what was thrown to the error handler of `source` and returns the
// error code that `function` is to return.
[[gnu::cold]] int failed(const char* function, const mpi::ErrorSource& source);

// `function` needs an instance, and none runs: begins one for a session. Returns an error code that
// the function is to return, unless it is MPI_SUCCESS. Without a session it ends the process.
[[gnu::cold]] int begin_running(const char* function);

// The same for the tool interface, which calls no error handler. Returns an MPI_T_ERR_ code.
[[gnu::cold]] int tool_failed();

// A count for a result of type int: MPI_UNDEFINED if it does not fit (MPI 5.0, section 2.5.8).
inline int narrow(MPI_Count count) {
  return count < std::numeric_limits<int>::min() || count > std::numeric_limits<int>::max()
             ? MPI_UNDEFINED
             : static_cast<int>(count);
}

} // namespace macadam::api
