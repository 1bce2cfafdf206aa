// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace macadam::tools {

// Where processes are in their programs, "exchange (halo.c:40), main (halo.c:71)", from the
// function of MPI outwards, by gdb, which is run on all of them at once and stops each for a
// moment. Those of which gdb cannot tell within some seconds are left out; if it can tell of none,
// or there is no gdb, the first has the reason in place of a stack.
std::map<pid_t, std::string> stacks_of(const std::vector<pid_t>& processes);

// What gdb's `bt` prints, as above; empty if there is no frame in it.
std::string read_stack(const std::string& backtrace);

} // namespace macadam::tools
