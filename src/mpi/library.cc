// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/library.h"

#include "boot/configuration.h"
#include "coll/level_rules.h"
#include "mpi/callback.h"
#include "mpi/network.h"
#include "mpi/process.h"
#include "mpi/tool.h"

#include <pthread.h>
#include <unistd.h>

namespace macadam::mpi {
namespace {

template <class Handle>
std::uintptr_t value(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

// A process that a fork makes has this one's memory, and would take part in the job in its place:
// there MPI looks as it does before MPI_Init, so that every function refuses at no further cost.
void watch_forks() {
  ::pthread_atfork(nullptr, nullptr, [] {
    Library& self = anytime();
    self.lock.forget_other_threads();
    if (self.users == 0) return;
    self.forked_from = self.own_process;
    self.users = 0;
    running = nullptr;
  });
}

} // namespace

std::atomic<Process*> running = nullptr;
std::atomic<Process*> standing = nullptr;

Process& begin_to_stand() {
  // Never destroyed: MPI_Finalized may be called as late as in another library's destructor. Two
  // threads may come here at once.
  static auto* const process = new Process;
  standing = process;
  return *process;
}

Library::Library() : info_env(MPI_INFO_ENV) {
  predefined.fill(&no_object);
  for (std::uintptr_t code = 0; code < predefined.size(); ++code) {
    if (auto* type = types.find(reinterpret_cast<MPI_Datatype>(code))) predefined[code] = type;
    if (auto* op = ops.find(reinterpret_cast<MPI_Op>(code))) predefined[code] = op;
  }
  empty_group.constant = MPI_GROUP_EMPTY;
  predefined[value(MPI_GROUP_EMPTY)] = &empty_group;
  predefined[value(MPI_INFO_ENV)] = &info_env;
  for (Errhandler* handler : {&errors_are_fatal, &errors_abort, &errors_return}) {
    predefined[value(handler->constant)] = handler;
  }
}

Library::~Library() = default;

int Library::admit_user(int wanted_level) {
  if (users++ == 0) {
    thread_level = wanted_level;
    thread_multiple = wanted_level == MPI_THREAD_MULTIPLE;
    if (wanted_level != MPI_THREAD_SINGLE) prepare_to_catch(); // a thread may be cancelled
    update_entry();
  }
  return thread_level;
}

void Library::dismiss_user() {
  if (--users != 0) return;
  thread_multiple = false;
  update_entry();
}

void Library::read_settings() {
  if (settings_read) return;
  // A simulated run depends on its command alone.
  const bool simulated = runtime != own_runtime_.get();
  boot::Configuration read =
      simulated ? boot::read_environment_only() : boot::read_configuration(coll::read_levels);
  settings = read.settings;
  settings_warnings = std::move(read.warnings);
  settings_read = true;
}

void Library::join_job() {
  if (job != nullptr) return;
  if (runtime == nullptr) {
    own_runtime_ = real_runtime();
    runtime = own_runtime_.get();
    watch_forks();
  }
  job = runtime->join();
  own_process = ::getpid();
  attribute_values.appnum = job->app_number();
  const boot::Universe* const universe = job->universe();
  const auto room = universe != nullptr ? universe->size() : std::optional<int>();
  attribute_values.universe_size = room.value_or(job->size());
  attribute_values.wtime_is_global = job->one_clock() ? 1 : 0;
}

} // namespace macadam::mpi
