// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/communicator.h"

#include <optional>
#include <string_view>
#include <vector>

// What the calls that make jobs, or let them meet, are told besides.
namespace macadam::mpi {

// Info key "timeout": the longest time to wait for others, in seconds.
struct Patience {
  // Throws MPI_ERR_INFO_VALUE. `info` may be null.
  Patience(Process& self, const Info* info);

  std::optional<double> seconds;
  std::optional<double> until; // the same as a time of Transport::now()
};

// Info key "soft": the counts of processes that are acceptable, "n" or "first:last" or
// "first:last:stride", several of them with commas between. Those from 0 to `most`, ascending.
// Throws MPI_ERR_INFO_VALUE.
std::vector<int> soft_counts(std::string_view soft, int most);

} // namespace macadam::mpi
