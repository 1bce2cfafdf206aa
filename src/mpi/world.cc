// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/world.h"

#include "mpi/calls.h"
#include "mpi/context.h"
#include "mpi/joint.h"
#include "mpi/process.h"
#include "mpi/report.h"

namespace macadam::mpi {
namespace {

using engine::Rank;
using engine::RankMap;

using Phase = World::Phase;

Communicator& predefined_communicator(Process& self, MPI_Comm constant, const char* name,
                                      std::uint64_t context, RankMap ranks) {
  Group& group = make_group(self, std::move(ranks), nullptr);
  Communicator& comm = make_communicator(self, context, group, nullptr, self.errors_are_fatal);
  comm.constant = constant;
  comm.name = name;
  self.predefined[reinterpret_cast<std::uintptr_t>(constant)] = &comm;
  return comm;
}

void make_communicators(Process& self) {
  const auto rank = static_cast<Rank>(self.job->rank());
  self.world.all = &predefined_communicator(self, MPI_COMM_WORLD, "MPI_COMM_WORLD",
                                            context_of(0, 1), RankMap(0, 1, self.job->size()));
  self.world.self = &predefined_communicator(self, MPI_COMM_SELF, "MPI_COMM_SELF",
                                             context_of(rank, 0), RankMap(rank, 1, 1));
}

void drop_communicators(Process& self) {
  for (Communicator** comm : {&self.world.all, &self.world.self}) {
    if (*comm == nullptr) continue;
    self.predefined[reinterpret_cast<std::uintptr_t>((*comm)->constant)] = &self.no_object;
    (*comm)->references = 1; // nobody waits any more
    release(self, **comm);
    *comm = nullptr;
  }
}

void check_level(int required) {
  if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED &&
      required != MPI_THREAD_SERIALIZED && required != MPI_THREAD_MULTIPLE) {
    base::fail(MPI_ERR_ARG,
               "required is {}, which is none of the thread levels MPI_THREAD_SINGLE ({}), "
               "FUNNELED ({}), SERIALIZED ({}), MULTIPLE ({})",
               required, MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
               MPI_THREAD_MULTIPLE);
  }
}

// A session may begin an instance while others are not there: it is here that all start together.
void connect_at_start(Process& self) {
  self.instance->wait_until([&] { return self.instance->engine->networks().connect_at_start(); });
}

// The processes that have spawned this job wait for it in MPI_Comm_spawn.
void meet_parent(Process& self) {
  boot::Universe* const universe = self.job->universe();
  const std::optional<boot::Met> parent =
      universe != nullptr ? universe->parent() : std::optional<boot::Met>();
  if (!parent) return;
  self.world.parent =
      &join_groups(self, *self.world.all, 0, [&] { return route_to(self, *parent, {}); });
  self.world.parent->name = "MPI_COMM_PARENT";
}

// The buffers of the world's communicators; those of a session stay. Other threads may make and
// free communicators meanwhile.
void drain_communicators(Process& self) {
  const base::List<Communicator>& live = self.instance->live_communicators;
  const auto next = [&]() -> Communicator* {
    for (Communicator& comm : live) {
      const bool of_world = comm.local->session == nullptr;
      if (of_world && comm.buffered && comm.buffered->attached()) return &comm;
    }
    return nullptr;
  };
  while (Communicator* const comm = next()) {
    retain(*comm);
    drain(*comm->buffered);
    release(self, *comm);
  }
}

} // namespace

void init_thread(Process& self, int*, char***, int required, int* provided) {
  if (self.forked_from != 0) not_initialized("MPI_Init");
  if (self.world.phase != Phase::before_init) {
    base::fail(MPI_ERR_OTHER, "{}; MPI can be initialised once in a process",
               self.world.phase == Phase::finalized ? "MPI has been finalised"
                                                    : "MPI is initialised already");
  }
  check_level(required);
  start(self);
  // A user from here on, as other threads may begin and end sessions while this one waits.
  const int level = self.admit_user(required);
  self.world.phase = Phase::initializing;
  try {
    connect_at_start(self);
    make_communicators(self);
    meet_parent(self);
  } catch (...) {
    drop_communicators(self);
    self.world.phase = Phase::before_init;
    const bool last = self.users == 1;
    if (last) leave(self);
    self.dismiss_user();
    if (last) end(self);
    throw;
  }
  *provided = level;
  self.world.main_thread = std::this_thread::get_id();
  fill_info_env(self, *provided);
  self.world.phase = Phase::initialized;
}

void init(Process& self, int* argc, char*** argv) {
  int provided = 0;
  init_thread(self, argc, argv, MPI_THREAD_SINGLE, &provided);
}

void finalize(Process& self) {
  World& world = self.world;
  if (world.phase != Phase::initialized)
    base::fail(MPI_ERR_OTHER, "{}; a session ends with MPI_Session_finalize",
               world.phase == Phase::finalized ? "MPI has been finalised already"
                                               : "MPI_Init was not called");
  // The callbacks of MPI_COMM_SELF's attributes come first, while all of MPI still works.
  if (world.self->attributes) world.self->attributes->clear(world.self->handle());
  drain(self.instance->requests.buffered);
  drain_communicators(self);
  part_all(self);
  if (self.users == 1) settle(self); // a session may have sends that it waits for later
  {
    const Held held(self);
    self.ending = self.users == 1;
    if (self.ending) leave(self);
  }
  {
    const LetGo let_go(self); // to threads that use a session
    self.job->barrier([&] {
      const Held held(self);
      self.instance->engine->progress();
      if (self.job->report_wanted()) self.job->write_report(finalize_report(self));
    });
  }
  const Held held(self); // functions that may be called at any time still are
  // The other users may have gone meanwhile.
  const bool last = std::exchange(self.ending, false) || leave_if_last(self);
  drop_communicators(self);
  world.phase = Phase::finalized;
  self.dismiss_user();
  if (last) end(self);
}

void initialized(Process& self, int* flag) {
  *flag = self.world.phase >= Phase::initialized ? 1 : 0;
}
void finalized(Process& self, int* flag) {
  *flag = self.world.phase == Phase::finalized ? 1 : 0;
}
void query_thread(Process& self, int* provided) {
  *provided = self.thread_level;
}
void is_thread_main(Process& self, int* flag) {
  *flag = self.world.main_thread == std::this_thread::get_id() ? 1 : 0;
}

void abort_(Process& self, Communicator& comm, int errorcode) {
  const std::string name = comm.name.empty() ? "a communicator without a name" : comm.name;
  if (self.trace) self.trace->write();
  self.job->abort(errorcode, fmt::format("called MPI_Abort({}, {})", name, errorcode));
}

} // namespace macadam::mpi
