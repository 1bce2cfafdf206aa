// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace macadam::rma {

// A region's keys: of its owner's nearest network, and of the one that connects all ranks; the same
// if it has one only.
struct BothKeys {
  engine::RemoteMemory near;
  engine::RemoteMemory far;
};

// What a rank tells the others when a window is made.
struct Exposure {
  BothKeys data;
  BothKeys control;
  std::uint64_t bytes = 0;
  std::uint64_t unit = 1;    // displacement unit, bytes
  bool mapped = false;       // its memory is in the address space of the ranks near it
  bool shares = false;       // all ranks of the window have its control block mapped
  std::uint16_t padding = 0; // so that no byte travels unset
  std::uint32_t more_padding = 0;
};

// The exposures of a window's ranks, of which each process keeps a row and a column. Ranks are laid
// out in rows of 64: a process knows those of its own row, which it also keeps in its control block
// for others to read, and one rank of each other row, the keeper of that row for it. So any other
// exposure is one read from a keeper away, and a process keeps 64 and another for every 64 ranks.
class Exposures {
 public:
  static constexpr int row_ranks = 64;
  // Bytes of the row in a control block; windows of one row keep none there.
  static constexpr std::size_t row_bytes(int ranks) {
    return ranks > row_ranks ? row_ranks * sizeof(Exposure) : 0;
  }

  // `all` is by rank; `rank` is ours.
  void keep(const std::vector<Exposure>& all, int rank) {
    rank_ = rank;
    ranks_ = static_cast<int>(all.size());
    const int first = first_of(rank);
    row_.assign(all.begin() + first, all.begin() + first + length_of(rank));
    column_.clear();
    for (int other = 0; ranks_ > row_ranks && other < ranks_; other += row_ranks)
      column_.push_back(all[static_cast<std::size_t>(keeper(other))]);
  }

  // Null if it is to be asked for.
  [[nodiscard]] const Exposure* find(int rank) const {
    if (first_of(rank) == first_of(rank_)) return &row_[place(rank)];
    return keeper(rank) == rank ? &column_[static_cast<std::size_t>(rank / row_ranks)] : nullptr;
  }
  // The rank of `rank`'s row that we ask: not the same for all, so that none is asked by all.
  [[nodiscard]] int keeper(int rank) const {
    return first_of(rank) + rank_ % row_ranks % length_of(rank);
  }
  // Where a rank is in its row.
  static std::size_t place(int rank) { return static_cast<std::size_t>(rank % row_ranks); }
  [[nodiscard]] const std::vector<Exposure>& row() const { return row_; }

 private:
  static int first_of(int rank) { return rank - rank % row_ranks; }
  [[nodiscard]] int length_of(int rank) const {
    return std::min(row_ranks, ranks_ - first_of(rank));
  }

  int rank_ = 0;
  int ranks_ = 0;
  std::vector<Exposure> row_;
  std::vector<Exposure> column_; // by row
};

} // namespace macadam::rma
