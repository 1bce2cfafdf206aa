// SPDX-License-Identifier: BSD-3-Clause
// What the tests of several jobs in one world share.
#pragma once

#include "base/error.h"
#include "sim/world.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace macadam::test {

using sim::Outcome;
using sim::World;
using sim::WorldOptions;
using Arguments = std::vector<std::string>;

inline WorldOptions smooth(int ranks, std::uint64_t seed = 1) {
  WorldOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.settings.emplace();
  return options;
}

inline WorldOptions rough(int ranks, std::uint64_t seed) {
  WorldOptions options = smooth(ranks, seed);
  options.faults.datagram_loss = 0.2;
  options.faults.datagram_duplication = 0.2;
  options.faults.datagram_reordering = 0.3;
  options.faults.jitter = 3;
  options.faults.progress_thread_jitter_ns = 20000;
  options.faults.split_writes = true;
  options.faults.shuffle = true;
  return options;
}

// All jobs on one machine, whose processes lose their cores now and then for longer than anything
// else takes.
inline WorldOptions crowded(int ranks, std::uint64_t seed) {
  WorldOptions options = smooth(ranks, seed);
  options.one_node = true;
  options.faults.core_loss = 0.002;
  options.faults.core_loss_ns = 60e6;
  options.faults.shuffle = true;
  options.settings->shm_ring_after = 8;
  return options;
}

// What can be spawned, by name. Called with the rank and the arguments.
using Programs = std::map<std::string, std::function<int(int rank, const Arguments& arguments)>>;

inline auto programs(Programs all) {
  return [all = std::move(all)](const boot::SpawnProgram& asked) -> World::Program {
    const auto found = all.find(asked.command.front());
    if (found == all.end())
      base::fail(MPI_ERR_SPAWN, "there is no program {}", asked.command.front());
    return [program = found->second,
            arguments = Arguments(asked.command.begin() + 1, asked.command.end())](int rank) {
      return program(rank, arguments);
    };
  };
}

inline void expect_finished(const Outcome& outcome) {
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
  EXPECT_EQ(outcome.exit_code, 0);
}

inline int class_of(int code) {
  int its = MPI_SUCCESS;
  MPI_Error_class(code, &its);
  return its;
}

inline int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

inline int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

inline int remote_size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_remote_size(comm, &size);
  return size;
}

inline int job() {
  return sim::Rank::current()->job();
}

inline WorldOptions jobs(int count, int ranks, WorldOptions options) {
  options.jobs = count;
  options.ranks = ranks;
  return options;
}

// The first job opens a port and publishes it; the others look until they find it.
inline std::string port_of_first(const char* service) {
  char port[MPI_MAX_PORT_NAME];
  if (job() == 0) {
    if (rank_of(MPI_COMM_WORLD) == 0) {
      MPI_Open_port(MPI_INFO_NULL, port);
      EXPECT_EQ(MPI_Publish_name(service, MPI_INFO_NULL, port), MPI_SUCCESS);
    }
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (MPI_Lookup_name(service, MPI_INFO_NULL, port) != MPI_SUCCESS)
      sim::Rank::current()->compute(100 * sim::microsecond);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  }
  return port;
}

inline MPI_Comm meet_at(const std::string& port, MPI_Comm comm = MPI_COMM_WORLD) {
  MPI_Comm inter = MPI_COMM_NULL;
  if (job() == 0)
    MPI_Comm_accept(port.c_str(), MPI_INFO_NULL, 0, comm, &inter);
  else
    MPI_Comm_connect(port.c_str(), MPI_INFO_NULL, 0, comm, &inter);
  return inter;
}

// All of both groups hear from all: by messages, and by a collective.
inline void talk(MPI_Comm inter) {
  const int remote = remote_size_of(inter), mine = rank_of(inter);
  std::vector<int> from(static_cast<std::size_t>(remote), -1);
  std::vector<MPI_Request> requests;
  for (int other = 0; other < remote; ++other) {
    MPI_Irecv(&from[static_cast<std::size_t>(other)], 1, MPI_INT, other, 5, inter,
              &requests.emplace_back());
    MPI_Isend(&mine, 1, MPI_INT, other, 5, inter, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (int other = 0; other < remote; ++other)
    EXPECT_EQ(from[static_cast<std::size_t>(other)], other);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
  EXPECT_EQ(sum, remote);
}

} // namespace macadam::test
