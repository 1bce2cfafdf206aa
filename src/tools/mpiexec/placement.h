// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace macadam::tools {

// The machines of a job, each with at least one rank, and which one each rank is on. Ranks are
// numbered program by program.
struct Placement {
  std::vector<std::string> hosts;
  std::vector<std::uint32_t> machines; // by rank, an index of `hosts`

  [[nodiscard]] std::uint32_t ranks_on(std::uint32_t machine) const;
  // "host a: ranks 0 to 3, 8", a line for each machine.
  [[nodiscard]] std::string map() const;
};

// Puts the ranks of each program on its hosts: by slots, machine after machine, or one on each
// machine in turn; with -ppn as many on each as that says. A program begins where the one before it
// on the same hosts has ended. Where the slots are too few they are filled again. Throws
// std::runtime_error if a machine would have more than most_ranks.
Placement place(const Options& options);

} // namespace macadam::tools
