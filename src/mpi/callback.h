// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/library.h"

#include <cxxabi.h>

#include <exception>
#include <unwind.h>
#include <utility>

namespace macadam::mpi {

// An exception has left a callback of the program: says which callback of which call, and ends the
// job. `what` may be null.
[[noreturn, gnu::cold]] void escaped(const char* callback, const char* what, const char* function);

// An exception of the program's, thrown by the runtime it has, must find its handler in here, where
// the C++ runtime is a copy of its own. That learns the sizes of registers when it first unwinds,
// and would end the process if that came later than the exception. So it does before the first
// callback or if there may be threads, and not at each start: it reads tables of 300 KiB that most
// programs never need.
inline void prepare_to_catch() {
  static const auto once [[maybe_unused]] =
      ::_Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

// Runs a callback of the program, for the MPI function `function` (null: the one that has the
// lock). MPI passes no exception on: the call, which may be one of C or Fortran, would be left half
// done.
template <class Call>
auto run_callback(const char* callback, Call&& call, const char* function = nullptr)
    -> decltype(call()) {
  prepare_to_catch();
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    throw; // the thread is being cancelled
  } catch (const std::exception& exception) {
    escaped(callback, exception.what(), function);
  } catch (...) {
    escaped(callback, nullptr, function);
  }
}

// The call that a callback is run in has its name again afterwards: calls of MPI that the callback
// makes set theirs. Where other threads may have the lock, LetGo sees to that.
class KeptName {
 public:
  explicit KeptName(Library& self)
      : self_(self),
        function_(self.lock.is_mine() || !self.thread_multiple ? self.function : nullptr) {}
  KeptName(const KeptName&) = delete;
  KeptName& operator=(const KeptName&) = delete;
  ~KeptName() {
    if (function_ != nullptr) self_.function = function_;
  }

 private:
  Library& self_;
  const char* const function_;
};

// The library's lock, if this thread has it, stays this thread's, whatever calls of MPI a callback
// makes.
class KeptLock {
 public:
  explicit KeptLock(Library& self)
      : self_(self), is_mine_(self.lock.is_mine()),
        kept_before_(is_mine_ && std::exchange(self.keeps_lock, true)) {}
  KeptLock(const KeptLock&) = delete;
  KeptLock& operator=(const KeptLock&) = delete;
  ~KeptLock() {
    if (is_mine_) self_.keeps_lock = kept_before_;
  }

 private:
  Library& self_;
  const bool is_mine_;
  const bool kept_before_;
};

// The same for a callback that progress may run, which no other thread may enter meanwhile.
template <class Call>
auto run_callback_locked(Library& self, const char* callback, Call&& call) -> decltype(call()) {
  const KeptName name(self);
  const KeptLock lock(self);
  return run_callback(callback, call);
}

// The same without the library's lock: the callback may wait for a lock of the program that another
// thread holds while it calls MPI, as Python's interpreter has one.
template <class Call>
auto run_callback_unlocked(Library& self, const char* callback, Call&& call) -> decltype(call()) {
  const char* const function = self.function;
  const KeptName name(self);
  const LetGo let_go(self);
  return run_callback(callback, call, function);
}

} // namespace macadam::mpi
