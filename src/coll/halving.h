// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "coll/reduction.h"
#include "coll/task.h"
#include "datatype/op.h"

#include <array>
#include <bit>

namespace macadam::coll {

// Long vectors cut in a piece for each rank, which go through ceil(log2(n)) steps for any number of
// ranks n, and (n - 1) / n of the bytes through each rank. A rank counts the pieces from its own
// on, round the end; in each step it has to do with half as many of them as before, or twice as
// many (Bruck et al. 1997; Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms",
// 2024). On a power of two the i-th piece is the own one's exclusive or with i instead, so that a
// rank has one partner for each step and not two. Nothing is packed: what a step moves lies in the
// vector in one run, or in two where it goes round the end.

// Each rank has a vector `mine`; in the end, its piece of `sum` is the sum of those of all ranks,
// and the rest may be partly combined. Both may be the same memory, and are of one type and count.
// Combines ranks out of order; what comes is combined in segments, each while the next one is on
// its way.
Task reduce_scatter_pieces(Comm& comm, Pieces pieces, Data mine, Data sum, const datatype::Op& op);
// Each rank has its piece of `all`; in the end, all of them. By twice as many in each step, or,
// where the rules have an allgather so, straight.
Task allgather_doubling(Comm& comm, Pieces pieces, Data all);
Task allgather_pieces(Comm& comm, Pieces pieces, Data all);
// Each rank has its piece of `all`; in the end, the root has all. On others, more may be written.
Task gather_pieces(Comm& comm, Pieces pieces, Data all, int root);
// The root has all; in the end, each rank has its piece. More may be written.
Task scatter_pieces(Comm& comm, Pieces pieces, Data all, int root);

// Where the i-th piece from a rank's own is, and whose it is.
class Halving {
 public:
  Halving(int ranks, int rank)
      : n_(ranks), rank_(rank), pairs_(std::has_single_bit(static_cast<unsigned>(ranks))) {}

  // The rank of the i-th piece, and that whose i-th piece is ours.
  [[nodiscard]] int ahead(int i) const { return pairs_ ? rank_ ^ i : around(rank_, i); }
  [[nodiscard]] int behind(int i) const { return pairs_ ? rank_ ^ i : around(rank_, n_ - i); }
  // Which of the root's pieces is ours.
  [[nodiscard]] int place(int root) const {
    return pairs_ ? rank_ ^ root : around(rank_, n_ - root);
  }
  // A rank has to do with so many pieces after k steps of halving; 1 after the last.
  [[nodiscard]] int held(int k) const {
    return static_cast<int>(((std::int64_t{1} << k) + n_ - 1) >> k);
  }
  [[nodiscard]] int steps() const { return std::bit_width(static_cast<unsigned>(n_ - 1)); }

  // Pieces `first` to `first + count - 1`, which are as held() or a binomial tree has them: those
  // that lie in one run in the vector, and those behind, round the end.
  struct Run {
    int begin;
    int end;
  };
  [[nodiscard]] std::array<Run, 2> runs(int first, int count) const {
    const int begin = pairs_ ? (rank_ ^ first) & ~(count - 1) : around(rank_, first);
    if (begin + count <= n_) return {{{begin, begin + count}, {}}};
    return {{{begin, n_}, {0, begin + count - n_}}};
  }

 private:
  [[nodiscard]] int around(int from, int by) const {
    return static_cast<int>((std::int64_t{from} + by) % n_);
  }

  int n_;
  int rank_;
  bool pairs_;
};

} // namespace macadam::coll
