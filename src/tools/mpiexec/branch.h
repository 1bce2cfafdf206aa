// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::tools {

// mpiexec's one argument where another one has started it to connect with several machines of its
// job, this one first.
inline constexpr const char* branch_word = "--branch";

// Starts the proxies of those machines, and passes on what they and the mpiexec at the other end of
// standard input and output say to each other. It understands nothing of that, and is over when
// they are. Returns the exit status.
int run_branch();

} // namespace macadam::tools
