// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "datatype/op.h"

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

// n ranks folded to a power of two of them, `size`: of the first 2 * (n - size) ranks, the even
// ones hand their part to the odd ones above them and wait. Order is kept.
struct Fold {
  explicit Fold(int n) {
    while (size * 2 <= n)
      size *= 2;
    paired = 2 * (n - size);
  }
  // The place of a rank among the active ones; -1: it waits.
  [[nodiscard]] int place(int rank) const {
    if (rank >= paired) return rank - paired / 2;
    return rank % 2 == 0 ? -1 : rank / 2;
  }
  [[nodiscard]] int rank(int place_) const {
    return place_ < paired / 2 ? 2 * place_ + 1 : place_ + paired / 2;
  }
  int size = 1;
  int paired = 0;
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

} // namespace macadam::coll
