// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::boot {

// If this process was started as one of several by a launcher whose job it cannot join: the
// sentence that refuses to run as so many jobs of one, with what is missing and what to do. Empty
// if not.
std::string refuse_foreign_launcher();

// After how many seconds a job ends that has not ended by then: mpiexec's, if no option says it,
// and with another launcher ours (hang/time_limit.h).
inline constexpr const char* timeout_variable = "MPIEXEC_TIMEOUT";
// 0 if it says nothing. Throws MPI_ERR_ARG.
double timeout_of_environment();
// Empty, or why this is no number of seconds.
std::string check_seconds(const std::string& text);

} // namespace macadam::boot
