// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/halving.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

#include <array>

namespace macadam::coll {
namespace {

// Where each rank's block of the vector begins: n + 1 numbers.
class Starts {
 public:
  Starts(const Comm& comm, const Blocks& blocks)
      : ranks_(comm.size()),
        memory_(comm, static_cast<std::size_t>(comm.size() + 1) * sizeof(MPI_Count)),
        starts_(reinterpret_cast<MPI_Count*>(memory_.bytes())) {
    MPI_Count at = 0;
    for (int i = 0; i < comm.size(); ++i) {
      starts_[i] = at;
      at += blocks.regular() ? blocks.count : blocks.counts[i];
    }
    starts_[comm.size()] = at;
  }
  [[nodiscard]] Data block(const Data& vector, int rank) const {
    return slice(vector, starts_[rank], starts_[rank + 1] - starts_[rank]);
  }
  [[nodiscard]] Pieces pieces() const { return {starts_[ranks_], ranks_, starts_}; }

 private:
  int ranks_;
  Scratch memory_;
  MPI_Count* starts_;
};

bool overlap(const Data& vector, const Data& part) {
  const auto* const begin = static_cast<const std::byte*>(vector.address);
  const auto* const at = static_cast<const std::byte*>(part.address);
  return at < begin + vector.count * vector.type->extent() &&
         begin < at + part.count * part.type->extent();
}

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
  if (mine.bytes() == 0) co_return;
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

// The same messages, combined as they come, each while the next one out and one in are under way:
// n - 1 steps of m / n, little memory. Combines ranks out of order.
Task reduce_scatter_pairwise(Comm& comm, Data mine, Blocks blocks, Data result,
                             const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  const int n = comm.size();
  const int rank = comm.rank();
  const Starts starts(comm, blocks);
  const Data own = starts.block(mine, rank);
  // In place, the result lies over blocks that are still to be sent; and gaps are not ours.
  const bool dense = is_dense(*result.type);
  const bool elsewhere = !dense || overlap(mine, result);
  Scratch memory(comm, *result.type, elsewhere ? result.count : 0);
  const Data sum = elsewhere ? memory.data() : result;
  Scratch spare(comm, *result.type, 2 * result.count);
  if (n == 1 || !dense) copy(own, sum);
  std::array<Batch, 2> batches{Batch(comm), Batch(comm)};
  const auto incoming = [&](int distance) {
    return slice(spare.data(), distance % 2 * result.count, result.count);
  };
  const auto start = [&](int distance) {
    if (distance >= n) return;
    Batch& batch = batches[distance % 2];
    const int to = (rank + distance) % n;
    const Data block = starts.block(mine, to);
    if (result.bytes() > 0) batch.receive((rank + n - distance) % n, incoming(distance));
    if (block.bytes() > 0) batch.send(to, block);
  };
  start(1);
  for (int distance = 1; distance < n; ++distance) {
    start(distance + 1);
    Batch& batch = batches[distance % 2];
    co_await batch.ended();
    if (batch.failed()) break;
    op.combine(incoming(distance).address, distance == 1 && dense ? own.address : sum.address,
               sum.address, result.count, *result.type);
  }
  co_await finish(comm, batches);
  if (elsewhere) copy(sum, result);
}

// By halving: log2(n) steps, m bytes a rank. Combines ranks out of order.
Task reduce_scatter_recursive_halving(Comm& comm, Data mine, Blocks blocks, Data result,
                                      const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  const Starts starts(comm, blocks);
  Scratch sum(comm, *mine.type, mine.count);
  co_await reduce_scatter_pieces(comm, starts.pieces(), mine, sum.data(), op);
  copy(starts.block(sum.data(), comm.rank()), result);
}

} // namespace macadam::coll
