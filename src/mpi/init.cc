// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/report.h"
#include "mpi/start.h"

#include <mutex>

namespace macadam::mpi {
namespace {

using Phase = Process::Phase;

// Everything that this process has sent is out of its hands, and everybody has come as far.
void drain(Process& self) {
  self.wait_until([&] { return self.engine->quiet() && self.engine->networks().drain(); });
  self.job->barrier([&] { self.engine->progress(); });
}

} // namespace

void init_thread(Process& self, int*, char***, int required, int* provided) {
  if (self.forked_from != 0) not_running("MPI_Init");
  if (self.phase != Phase::before_init) {
    base::fail(MPI_ERR_OTHER, "{}; MPI can be initialised once in a process",
               self.phase == Phase::initialized ? "MPI is initialised already"
                                                : "MPI has been finalised");
  }
  if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED &&
      required != MPI_THREAD_SERIALIZED && required != MPI_THREAD_MULTIPLE) {
    base::fail(MPI_ERR_ARG,
               "required is {}, which is none of the thread levels MPI_THREAD_SINGLE ({}), "
               "FUNNELED ({}), SERIALIZED ({}), MULTIPLE ({})",
               required, MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
               MPI_THREAD_MULTIPLE);
  }
  start(self);
  self.thread_level = required;
  self.thread_multiple = required == MPI_THREAD_MULTIPLE;
  self.main_thread = std::this_thread::get_id();
  fill_info_env(self, required);
  self.phase = Phase::initialized;
  running = &self;
  *provided = required;
}

void init(Process& self, int* argc, char*** argv) {
  int provided = 0;
  init_thread(self, argc, argv, MPI_THREAD_SINGLE, &provided);
}

void finalize(Process& self) {
  // The callbacks of MPI_COMM_SELF's attributes come first, while all of MPI still works.
  if (self.self->attributes) self.self->attributes->clear(self.self->handle());
  drain(self.requests.buffered);
  for (const Communicator& comm : self.live_communicators) {
    if (comm.buffered) drain(*comm.buffered);
  }
  drain(self);
  if (self.settings.report) self.job->write_final_report(final_report(self));
  const std::lock_guard held(self.lock); // functions that may be called at any time still are
  running = nullptr;
  self.marks_partitions.store(false, std::memory_order_relaxed);
  self.phase = Phase::finalized;
  stop(self);
}

void initialized(Process& self, int* flag) {
  *flag = self.phase != Phase::before_init ? 1 : 0;
}
void finalized(Process& self, int* flag) {
  *flag = self.phase == Phase::finalized ? 1 : 0;
}
void query_thread(Process& self, int* provided) {
  *provided = self.thread_level;
}
void is_thread_main(Process& self, int* flag) {
  *flag = self.main_thread == std::this_thread::get_id() ? 1 : 0;
}

void abort_(Process& self, Communicator& comm, int errorcode) {
  const std::string name = comm.name.empty() ? "a communicator without a name" : comm.name;
  self.job->abort(errorcode, fmt::format("called MPI_Abort({}, {})", name, errorcode));
}

} // namespace macadam::mpi
