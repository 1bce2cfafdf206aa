// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/hosts.h"

#include <string>
#include <vector>

namespace macadam::tools {

// The machines that a batch system has given the job which mpiexec runs in, and how many ranks each
// should have: of Slurm, PBS, LSF or Grid Engine, by what stands in the environment.
struct Allocation {
  std::vector<Host> hosts;          // empty: there is none
  std::vector<std::string> starter; // starts a command on a machine, as MACADAM_SSH; empty: ssh
};

// Throws std::runtime_error if there is one and it cannot be read.
Allocation find_allocation();

// The names of "a[0-2,07],b", as Slurm has them. Throws std::runtime_error.
std::vector<std::string> expand_names(const std::string& list);
// The numbers of "2(x3),1", as Slurm has them. Throws std::runtime_error.
std::vector<int> expand_counts(const std::string& list);

} // namespace macadam::tools
