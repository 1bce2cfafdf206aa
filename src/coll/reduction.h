// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "datatype/op.h"

#include <cstdint>
#include <utility>

namespace macadam::coll {

// A partial result that grows over neighbouring ranks. What comes from below or above is received
// into spare() and combined in the order of the ranks, so that operations need not commute, and the
// same two operands give the same bits on whichever rank they meet. Two buffers change roles,
// nothing is copied.
class Partial {
 public:
  Partial(const datatype::Op& op, Data value, Data spare) : op_(op), value_(value), spare_(spare) {}

  [[nodiscard]] const Data& value() const { return value_; }
  [[nodiscard]] const Data& spare() const { return spare_; }

  // spare() holds the ranks below ours, or above.
  void add_below() { op_.apply(spare_.address, value_.address, value_.count, *value_.type); }
  void add_above() {
    op_.apply(value_.address, spare_.address, value_.count, *value_.type);
    std::swap(value_, spare_);
  }
  // Puts the value where it is wanted.
  void store(const Data& result) const {
    if (value_.address != result.address) copy(value_, result);
  }

 private:
  const datatype::Op& op_;
  Data value_;
  Data spare_;
};

// n ranks folded to a power of two of them, `size`: n - size ranks hand their part to a partner and
// wait.
struct Fold {
  enum class Who : std::uint8_t {
    neighbours, // of the first 2 * (n - size) ranks, the even ones to the odd ones above: keeps
                // order
    last, // the last ones to the first ones, so that the partners of a rank are those that it has
          // in a binomial tree, too
  };
  explicit Fold(int n, Who hands_over = Who::neighbours) : who(hands_over) {
    while (size * 2 <= n)
      size *= 2;
    pairs = n - size;
  }
  // The place of a rank among the active ones; -1: it waits.
  [[nodiscard]] int place(int rank) const {
    if (who == Who::last) return rank < size ? rank : -1;
    if (rank >= 2 * pairs) return rank - pairs;
    return rank % 2 == 0 ? -1 : rank / 2;
  }
  [[nodiscard]] int rank(int place_) const {
    if (who == Who::last) return place_;
    return place_ < pairs ? 2 * place_ + 1 : place_ + pairs;
  }
  // Whom a rank hands its part to, or who hands it to this rank; -1: nobody.
  [[nodiscard]] int partner(int rank) const {
    if (who == Who::neighbours) return rank < 2 * pairs ? rank ^ 1 : -1;
    if (rank >= size) return rank - size;
    return rank < pairs ? rank + size : -1;
  }
  Who who;
  int size = 1;
  int pairs = 0;
};

// Elements [begin(i), begin(i + 1)) of `count` are the i-th of n pieces: even ones, unless `bounds`
// says where they begin (and the last one ends).
struct Pieces {
  [[nodiscard]] MPI_Count begin(int i) const {
    if (bounds != nullptr) return bounds[i];
    return i * (count / n) + (i < count % n ? i : count % n);
  }
  [[nodiscard]] Data operator()(const Data& data, int from, int to) const {
    return slice(data, begin(from), begin(to) - begin(from));
  }
  MPI_Count count;
  int n;
  const MPI_Count* bounds = nullptr;
};

// Pieces as a block for each rank, whichever has that number; ranks beyond have none.
class Slices {
 public:
  Slices(const Comm& comm, Pieces pieces)
      : ranks_(comm.size()),
        memory_(comm, 2 * static_cast<std::size_t>(ranks_) * sizeof(MPI_Count)),
        counts_(reinterpret_cast<MPI_Count*>(memory_.bytes())) {
    for (int i = 0; i < ranks_; ++i) {
      counts_[i] = i < pieces.n ? pieces.begin(i + 1) - pieces.begin(i) : 0;
      counts_[ranks_ + i] = i < pieces.n ? pieces.begin(i) : pieces.count;
    }
  }
  [[nodiscard]] Data of(const Data& vector, int i) const {
    return slice(vector, counts_[ranks_ + i], counts_[i]);
  }
  [[nodiscard]] Blocks blocks(const Data& vector) const {
    return {
        vector.address, 0, vector.type, {counts_, true, ranks_}, {counts_ + ranks_, true, ranks_},
        nullptr};
  }

 private:
  int ranks_;
  Scratch memory_;
  MPI_Count* counts_;
};

} // namespace macadam::coll
