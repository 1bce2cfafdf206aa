// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::tools {

// mpiexec's one argument where another mpiexec has started it for a machine of its job.
inline constexpr const char* proxy_word = "--proxy";

// Starts the ranks of this machine and watches them for the mpiexec at the other end of standard
// input and output (frames.h). Returns the exit status.
int run_proxy();

// This process's environment as ranks on other machines have it: without what tells of a machine or
// of a login.
std::vector<std::string> environment_of_ranks();

} // namespace macadam::tools
