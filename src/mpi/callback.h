// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/library.h"

#include <cxxabi.h>

#include <exception>
#include <unwind.h>

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

// The same without the library's lock: the callback may wait for a lock of the program that another
// thread holds while it calls MPI, as Python's interpreter has one.
template <class Call>
auto run_callback_unlocked(Library& self, const char* callback, Call&& call) -> decltype(call()) {
  const char* const function = self.function;
  const LetGo let_go(self);
  return run_callback(callback, call, function);
}

} // namespace macadam::mpi
