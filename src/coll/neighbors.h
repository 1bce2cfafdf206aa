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
};

} // namespace macadam::coll
