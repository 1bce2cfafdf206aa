// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

namespace macadam::coll {

// Whom a rank of a communicator with a topology receives from and sends to: ranks, or MPI_PROC_NULL
// beyond the edge of a grid. Blocks of the neighbourhood collectives go with these by position.
struct Neighbors {
  std::span<const int> sources;
  std::span<const int> destinations;
  // Neighbours come in pairs, the one before and the one after in each dimension.
  bool grid = false;

  // The position of the source whose messages come in place `step`, where several edges join two
  // ranks. In a grid whose dimension has one or two positions, the block for the neighbour before
  // is what that neighbour gets from the one after it; so the sources of a dimension are taken in
  // the opposite order of the destinations (MPI 5.0, section 8.6).
  [[nodiscard]] int source_at(int step) const { return grid ? step ^ 1 : step; }
};

} // namespace macadam::coll
