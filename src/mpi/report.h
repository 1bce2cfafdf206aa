// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace macadam::mpi {

class Process;

// A communicator's name, or its place in the order in which its leader made communicators: the same
// on all ranks.
std::string name_of(const Process& self, std::uint64_t context);

// What this rank waits for, as boot/hang/hang_report.h describes it (JSON).
std::string hang_report(Process& self);

// The same of one that waits for the others in MPI_Finalize.
std::string finalize_report(const Process& self);

// What this rank did, as boot/job_report.h describes it (JSON).
std::string final_report(Process& self);

} // namespace macadam::mpi
