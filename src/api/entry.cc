// SPDX-License-Identifier: BSD-3-Clause
#include "api/entry.h"

#include <cxxabi.h>

#include <new>

namespace macadam::api {

using base::Error;

namespace {

// So short that it needs none.
Error no_memory() {
  return {MPI_ERR_NO_MEM, "out of memory"};
}

Error internal(const std::exception& error) {
  return {MPI_ERR_INTERN, std::string("internal error: ") + error.what()};
}

// Hands the exception being handled to `report`, as the Error that was thrown (not a copy, which
// would lose a derived class).
template <class Report>
int with_current_error(Report&& report) {
  try {
    throw;
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    return report(no_memory());
  } catch (const abi::__forced_unwind&) {
    throw; // the thread is being cancelled
  } catch (const std::exception& error) {
    return report(internal(error));
  }
}

int tool_code(int error_class) {
  if (error_class == MPI_ERR_NO_MEM) return MPI_T_ERR_MEMORY;
  const bool of_tools =
      error_class >= MPI_T_ERR_CANNOT_INIT && error_class <= MPI_T_ERR_PVAR_NO_ATOMIC;
  return of_tools ? error_class : MPI_T_ERR_INVALID;
}

} // namespace

void Entry::do_more(mpi::Library& self, const char* function) {
  More& more = more_.emplace(self);
  more.locked = self.thread_multiple;
  if (more.locked) self.lock.lock();
  more.profile = self.profile.get();
  if (more.profile != nullptr) more.profile->enter(more.call, function);
  more.trace = self.trace.get();
  if (more.trace != nullptr && more.trace->rests()) more.trace = nullptr;
  if (more.trace != nullptr) more.trace->enter(more.traced, function);
}

void Entry::undo_more() {
  More& more = *more_;
  if (more.trace != nullptr) more.trace->leave(more.traced);
  if (more.profile != nullptr) more.profile->leave(more.call);
  if (!more.locked) return;
  more.self.lock.unlock();
  more.self.post_left();
}

int failed(const char* function, const mpi::ErrorSource& source) {
  return with_current_error(
      [&](const Error& error) { return mpi::raise(mpi::anytime(), function, source, error); });
}

int begin_running(const char* function) {
  mpi::Process& self = mpi::anytime();
  if (self.users == 0) mpi::not_initialized(function);
  try {
    mpi::start(self);
    return MPI_SUCCESS;
  } catch (...) {
    return failed(function, {});
  }
}

int tool_failed() {
  return with_current_error([](const Error& error) { return tool_code(error.error_class); });
}

} // namespace macadam::api
