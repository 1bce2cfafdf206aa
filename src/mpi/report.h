// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::mpi {

class Process;

// What this rank waits for, as boot/hang_report.h describes it (JSON).
std::string hang_report(Process& self);

// What this rank did, as boot/job_report.h describes it (JSON).
std::string final_report(Process& self);

} // namespace macadam::mpi
