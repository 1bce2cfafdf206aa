// SPDX-License-Identifier: BSD-3-Clause
#include "coll/neighbors.h"

#include <mpi.h>

#include <unordered_map>
#include <utility>

namespace macadam::coll {

Edges::Edges(std::vector<int> ranks, Listed listed) : ranks_(std::move(ranks)) {
  std::unordered_map<int, std::size_t> first; // of each rank's edges, in the order of by_rank_
  for (int i = 0; i < static_cast<int>(ranks_.size()); ++i) {
    const int position = listed == Listed::in_opposite_pairs ? i ^ 1 : i;
    const int rank = rank_at(position);
    if (rank == MPI_PROC_NULL) continue;
    parallel_ |= !first.try_emplace(rank, by_rank_.size()).second;
    by_rank_.push_back(position);
  }
  std::ranges::stable_sort(by_rank_, {}, [&](int position) { return first[rank_at(position)]; });
}

} // namespace macadam::coll
