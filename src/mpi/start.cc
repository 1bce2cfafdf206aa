// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/start.h"

#include "boot/configuration.h"
#include "mpi/network.h"
#include "mpi/process.h"
#include "mpi/window.h"

#include <cstdio>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

namespace macadam::mpi {
namespace {

using engine::Rank;
using engine::RankMap;

// An exception of the program's, thrown by the runtime it has, must find its handler in here, where
// the C++ runtime is a copy of its own. That learns the sizes of registers when it first unwinds,
// and would end the process if that came later than the exception.
void prepare_to_catch() {
  ::_Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

pid_t own_process = 0;

// A process that a fork makes has this one's memory, and would take part in the job in its place:
// there MPI looks as it does before MPI_Init, so that every function refuses at no further cost.
void watch_forks() {
  if (own_process == 0) {
    ::pthread_atfork(nullptr, nullptr, [] {
      Process& self = anytime();
      self.lock.forget_other_threads();
      if (running == nullptr) return;
      self.forked_from = own_process;
      running = nullptr;
    });
  }
  own_process = ::getpid();
}

void print_warnings(const Process& self) {
  if (self.job->rank() != 0) return;
  for (const std::string& warning : self.settings_warnings) {
    std::fprintf(stderr, "macadam: warning: %s\n", warning.c_str());
  }
}

// Keeps the values of the counters for the tool interface, which outlives the engine.
void freeze_counters(Process& self) {
  base::CounterList frozen;
  for (const base::Counter& row : self.counters.rows()) {
    frozen.add(row.group, row.name, row.text, self.last_counters.emplace_back(*row.value));
  }
  self.counters = std::move(frozen);
}

Communicator& predefined_communicator(Process& self, MPI_Comm constant, const char* name,
                                      std::uint64_t context, RankMap ranks) {
  Group& group = make_group(self, std::move(ranks));
  Communicator& comm = make_communicator(self, context, group, nullptr, self.errors_are_fatal);
  comm.constant = constant;
  comm.name = name;
  self.predefined[reinterpret_cast<std::uintptr_t>(constant)] = &comm;
  return comm;
}

} // namespace

void read_settings(Process& self) {
  if (self.settings_read) return;
  // A simulated run depends on its command alone.
  const bool simulated = self.surroundings != self.own_surroundings.get();
  boot::Configuration read = simulated ? boot::read_environment_only() : boot::read_configuration();
  self.settings = read.settings;
  self.settings_warnings = std::move(read.warnings);
  self.settings_read = true;
}

void start(Process& self) {
  if (self.surroundings == nullptr) {
    self.own_surroundings = real_surroundings();
    self.surroundings = self.own_surroundings.get();
    prepare_to_catch();
    watch_forks();
  }
  self.job = self.surroundings->join();
  read_settings(self);
  print_warnings(self);
  self.take_networks(self.surroundings->make_transports(self.settings));
  const auto rank = static_cast<Rank>(self.job->rank());
  const int size = self.job->size();
  std::vector<engine::Transport*> networks;
  for (const auto& transport : self.transports)
    networks.push_back(transport.get());
  self.engine = std::make_unique<engine::Engine>(engine::Networks(std::move(networks)),
                                                 static_cast<Rank>(size), self.settings);
  self.coll = std::make_unique<coll::Resources>(*self.engine, self.types[MPI_BYTE]);
  self.engine->partitioned().keep_left_in(self.left_partitions);
  self.engine->list_counters(self.counters);
  self.windows->counters.list(self.counters);
  for (const auto& transport : self.transports)
    transport->list_counters(self.counters);

  const std::uint64_t own = static_cast<std::uint64_t>(rank) << 32;
  self.world =
      &predefined_communicator(self, MPI_COMM_WORLD, "MPI_COMM_WORLD", 4, RankMap(0, 1, size));
  self.self =
      &predefined_communicator(self, MPI_COMM_SELF, "MPI_COMM_SELF", own, RankMap(rank, 1, 1));
  self.attribute_values.appnum = self.job->app_number();
  self.attribute_values.universe_size = size;
  self.attribute_values.wtime_is_global = self.job->one_clock() ? 1 : 0;
}

void stop(Process& self) {
  for (Communicator** comm : {&self.world, &self.self}) {
    self.predefined[reinterpret_cast<std::uintptr_t>((*comm)->constant)] = nullptr;
    (*comm)->references = 1; // nobody waits any more
    release(self, **comm);
    *comm = nullptr;
  }
  freeze_counters(self);
  self.coll.reset();
  self.engine.reset();
  while (!self.transports.empty())
    self.transports.pop_back();
  self.surroundings = nullptr;
  self.own_surroundings.reset();
  self.job->finalize();
}

} // namespace macadam::mpi
