// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

namespace macadam::coll {
namespace {

// Where each rank's block of the vector begins: n + 1 numbers.
class Starts {
 public:
  Starts(const Comm& comm, const Blocks& blocks)
      : memory_(comm, static_cast<std::size_t>(comm.size() + 1) * sizeof(MPI_Count)),
        starts_(reinterpret_cast<MPI_Count*>(memory_.bytes())) {
    MPI_Count at = 0;
    for (int i = 0; i < comm.size(); ++i) {
      starts_[i] = at;
      at += blocks.regular() ? blocks.count : blocks.counts[i];
    }
    starts_[comm.size()] = at;
  }
  [[nodiscard]] MPI_Count operator[](int rank) const { return starts_[rank]; }
  [[nodiscard]] Data block(const Data& vector, int rank) const {
    return slice(vector, starts_[rank], starts_[rank + 1] - starts_[rank]);
  }

 private:
  Scratch memory_;
  MPI_Count* starts_;
};

MPI_Count total(const Comm& comm, const Blocks& blocks) {
  if (blocks.regular()) return blocks.count * comm.size();
  MPI_Count sum = 0;
  for (int i = 0; i < comm.size(); ++i)
    sum += blocks.counts[i];
  return sum;
}

} // namespace

Task reduce_scatter(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_reduce_scatter(self);
  if (self.needs_board()) return run_with_board(self, &reduce_scatter);
  const Arguments& a = self.arguments;
  const Blocks& blocks = a.send;
  const MPI_Count count = total(self, blocks);
  const Data mine{a.in_place ? a.receive.address : blocks.address, count, blocks.type};
  const MPI_Count share = blocks.regular() ? blocks.count : blocks.counts[self.rank()];
  const Data result{a.receive.address, share, blocks.type};
  return reduce_scatter_on(self, mine, blocks, result, *a.op);
}

Task reduce_scatter_on(Comm& comm, Data mine, Blocks blocks, Data result, const datatype::Op& op) {
  switch (comm.choose(Kind::reduce_scatter, mine.bytes(), !op.commutative(),
                      can_share(comm, *mine.type), blocks.regular())) {
  case Algorithm::slices:
    return reduce_scatter_slices(comm, mine, blocks, result, op);
  case Algorithm::shared:
    return reduce_scatter_shared(comm, mine, blocks, result, op);
  case Algorithm::recursive_halving:
    return reduce_scatter_recursive_halving(comm, mine, blocks, result, op);
  case Algorithm::pairwise:
    return reduce_scatter_pairwise(comm, mine, blocks, result, op);
  default:
    return reduce_scatter_direct(comm, mine, blocks, result, op);
  }
}

// Everybody sends each block to its rank, which combines from the last rank to the first: one step,
// m bytes out and in, m bytes of memory.
Task reduce_scatter_direct(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op) {
  const int n = comm.size();
  const int rank = comm.rank();
  const Starts starts(comm, blocks);
  Scratch parts(comm, *result.type, n * result.count);
  const auto part = [&](int i) { return slice(parts.data(), i * result.count, result.count); };
  Batch batch(comm);
  for (int distance = 1; distance < n; ++distance) {
    const int to = (rank + distance) % n;
    const Data block = starts.block(mine, to);
    if (block.bytes() > 0) batch.send(to, block);
  }
  for (int distance = 1; distance < n && result.bytes() > 0; ++distance) {
    const int from = (rank + n - distance) % n;
    batch.receive(from, part(from));
  }
  co_await batch;
  if (result.bytes() == 0) co_return;
  const Data own = starts.block(mine, rank);
  const Data sum = part(n - 1);
  if (rank == n - 1) copy(own, sum);
  for (int i = n - 2; i >= 0; --i) {
    const void* from = i == rank ? own.address : part(i).address;
    op.apply(from, sum.address, sum.count, *sum.type);
  }
  copy(sum, result);
}

// The same messages, one out and one in at a time, combined as they come: n - 1 steps of m / n,
// little memory. Combines ranks out of order.
Task reduce_scatter_pairwise(Comm& comm, Data mine, Blocks blocks, Data result,
                             const datatype::Op& op) {
  const int n = comm.size();
  const int rank = comm.rank();
  const Starts starts(comm, blocks);
  // In place, the result lies over blocks that are still to be sent.
  Scratch sum(comm, *result.type, result.count);
  Scratch spare(comm, *result.type, result.count);
  copy(starts.block(mine, rank), sum.data());
  Batch batch(comm);
  for (int distance = 1; distance < n; ++distance) {
    const int to = (rank + distance) % n;
    const Data block = starts.block(mine, to);
    if (block.bytes() > 0) batch.send(to, block);
    if (result.bytes() > 0) batch.receive((rank + n - distance) % n, spare.data());
    co_await batch;
    op.apply(spare.data().address, sum.data().address, result.count, *result.type);
  }
  copy(sum.data(), result);
}

// Recursive halving: log2(n) steps, m bytes a rank, two more steps where n is not a power of two.
// Combines ranks out of order.
Task reduce_scatter_recursive_halving(Comm& comm, Data mine, Blocks blocks, Data result,
                                      const datatype::Op& op) {
  const Fold fold(comm.size());
  const int rank = comm.rank();
  const int place = fold.place(rank);
  if (mine.bytes() == 0) co_return;
  const Starts starts(comm, blocks);
  Batch batch(comm);
  const int partner = fold.partner(rank);
  if (place < 0) {
    batch.send(partner, mine);
    co_await batch;
    if (result.bytes() > 0) batch.receive(partner, result);
    co_await batch;
    co_return;
  }
  Scratch sum(comm, *mine.type, mine.count);
  Scratch spare(comm, *mine.type, mine.count);
  copy(mine, sum.data());
  if (partner >= 0) {
    batch.receive(partner, spare.data());
    co_await batch;
    op.apply(spare.data().address, sum.data().address, mine.count, *mine.type);
  }
  // The piece of a pair are the blocks of both.
  Scratch memory(comm, static_cast<std::size_t>(fold.size + 1) * sizeof(MPI_Count));
  auto* bounds = reinterpret_cast<MPI_Count*>(memory.bytes());
  for (int i = 0; i < fold.size; ++i) {
    const int top = fold.rank(i);
    bounds[i] = starts[fold.partner(top) >= 0 ? fold.partner(top) : top];
  }
  bounds[fold.size] = mine.count;
  co_await scatter_halving(comm, fold, Pieces{mine.count, fold.size, bounds}, sum.data(),
                           spare.data(), op);
  if (partner >= 0) {
    const Data theirs = starts.block(sum.data(), partner);
    if (theirs.bytes() > 0) batch.send(partner, theirs);
  }
  copy(starts.block(sum.data(), rank), result);
  co_await batch;
}

} // namespace macadam::coll
