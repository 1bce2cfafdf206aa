// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "sim/patterns/pattern.h"
#include "sim/world.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace macadam::sim {

// One number over all ranks.
struct Spread {
  double least = 0, most = 0, sum = 0;
  std::uint64_t ranks = 0;
  void add(double value);
  [[nodiscard]] double mean() const { return ranks == 0 ? 0 : sum / static_cast<double>(ranks); }
};

// What a pattern did, taken in each rank after it and before MPI_Finalize.
struct Study {
  Outcome outcome;
  std::vector<Row> rows;
  Spread connections;                 // open, per process
  Spread init_us;                     // virtual time in MPI_Init
  Spread pattern_us;                  // virtual time in the pattern
  Spread transport_bytes;             // held for the transport (Transport::memory_bytes)
  Spread engine_bytes;                // held by the engine
  Spread registered_bytes;            // registered with the device
  double resident_bytes_per_rank = 0; // of the simulation itself, at the end of the pattern
  double stack_bytes_most = 0;        // touched by one rank
};

// Runs a pattern, with parameters as on the command line. Throws base::Error as World::run() does,
// and for wrong parameters.
Study run_pattern(World& world, const Pattern& pattern, std::span<const std::string> parameters);

std::string as_table(const Study& study);
// The same for programs: an object of numbers with their units in their names.
std::string as_json(const Study& study);

} // namespace macadam::sim
