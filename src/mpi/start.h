// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::mpi {

class Process;

// Takes the settings from the environment, once in a process.
void read_settings(Process& self);

// Joins the job, and makes the transport, the engine and the two predefined communicators. Throws
// base::Error; then MPI cannot be used.
void start(Process& self);

// The way back, once nothing is in flight.
void stop(Process& self);

} // namespace macadam::mpi
