// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/calls.h"
#include "mpi/collectives.h"

// Defines the three forms of a collective, MPI_X, MPI_Ix and MPI_X_init, from the function x_call()
// that checks the arguments and makes the CollectiveCall. `parameters` and `arguments`, in
// parentheses, are what stands between the process and the communicator.
#define MACADAM_COLLECTIVE(name, parameters, arguments)                                            \
  void name(Process& self MACADAM_AND parameters, Communicator& comm) {                            \
    run(self, comm, name##_call(self, comm MACADAM_AND arguments));                                \
  }                                                                                                \
  void i##name(Process& self MACADAM_AND parameters, Communicator& comm, MPI_Request* request) {   \
    launch(self, comm, name##_call(self, comm MACADAM_AND arguments), request);                    \
  }                                                                                                \
  void name##_init(Process& self MACADAM_AND parameters, Communicator& comm, Info*,                \
                   MPI_Request* request) {                                                         \
    prepare(self, comm, name##_call(self, comm MACADAM_AND arguments), request);                   \
  }                                                                                                \
  static_assert(true)
#define MACADAM_AND(...) __VA_OPT__(, ) __VA_ARGS__
