// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "base/object.h"

#include <mpi.h>

namespace macadam::mpi {

class Process;
struct Communicator;

// Which error handler is to be called: that of the communicator, window, file or session that the call
// was made on; without one, that of MPI_COMM_SELF (MPI 5.0, section 9.3).
struct ErrorSource {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session session = MPI_SESSION_NULL;
};

// Reports an error of the entry point `function` through the error handler, with the message
// "MPI_Send: <text>" kept for MPI_Error_string. Returns the error code that the function returns.
int raise(Process& self, const char* function, const ErrorSource& source, const base::Error& error);

// An entry point was called before MPI_Init or after MPI_Finalize: says so and ends the process.
int not_running(const char* function);

}  // namespace macadam::mpi
