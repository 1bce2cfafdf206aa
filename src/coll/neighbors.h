// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace macadam::coll {

// One side of a rank's edges in a topology: those from its sources, or those to its destinations.
class Edges {
 public:
  // In which order a side lists its edges. A grid lists two a dimension, to the neighbour before
  // and to the one after; what goes to the one before is what that one gets from the one after it.
  // So where a dimension has one or two positions, its sources are told apart in the opposite order
  // of its destinations (MPI 5.0, section 8.6).
  enum class Listed { as_given, in_opposite_pairs };

  Edges() = default;
  // `ranks`: whom each edge joins, MPI_PROC_NULL beyond the end of a grid.
  explicit Edges(std::vector<int> ranks, Listed listed = Listed::as_given);

  // By position, as blocks of the neighbourhood collectives are.
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }

  // Calls `visit(rank, positions)` for each rank that edges join. Parallel edges, several with one
  // rank, are told apart by their order alone: the n-th position here is the n-th of its other end.
  template <class Visit>
  void for_each_rank(Visit visit) const {
    for (std::span<const int> rest = by_rank_; !rest.empty();) {
      const int rank = rank_at(rest.front());
      const auto end = std::ranges::find_if(rest, [&](int i) { return rank_at(i) != rank; });
      const auto n = static_cast<std::size_t>(end - rest.begin());
      visit(rank, rest.first(n));
      rest = rest.subspan(n);
    }
  }
  [[nodiscard]] bool parallel() const { return parallel_; }

 private:
  [[nodiscard]] int rank_at(int position) const {
    return ranks_[static_cast<std::size_t>(position)];
  }

  std::vector<int> ranks_;
  std::vector<int> by_rank_; // positions, those of a rank together
  bool parallel_ = false;
};

} // namespace macadam::coll
