// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <cstdint>
#include <thread>

namespace macadam::mpi {

struct Communicator;

// The world model: MPI_COMM_WORLD and MPI_COMM_SELF on the instance, from MPI_Init to MPI_Finalize,
// once in a process.
struct World {
  enum class Phase : std::uint8_t { before_init, initializing, initialized, finalized };

  Phase phase = Phase::before_init;
  std::thread::id main_thread;
  Communicator* all = nullptr;      // MPI_COMM_WORLD, while initialized
  Communicator* self = nullptr;     // MPI_COMM_SELF
  Communicator* parent = nullptr;   // to those that have spawned this job, until it is freed
  bool self_has_errhandler = false; // set by the program
};

} // namespace macadam::mpi
