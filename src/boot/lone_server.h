// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

namespace macadam::boot {

// The environment variable that names the mpiexec to be started; else it is looked for beside the
// library.
inline constexpr const char* mpiexec_variable = "MACADAM_MPIEXEC";
// What it is started with: this word and the descriptor of a socket.
inline constexpr const char* serve_word = "--serve-lone-program";

// Starts an mpiexec beside a program that was started alone, for what only a launcher can do. It is
// no child of the program, has its standard output and error, and ends with it, however that ends.
// Shares `memory`, a job of one, with it. Returns once it serves, after some milliseconds. Throws
// MPI_ERR_OTHER.
void start_lone_server(JobMemory& memory);

} // namespace macadam::boot
