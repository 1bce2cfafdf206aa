// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/halving.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

namespace macadam::coll {

Task allreduce(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_allreduce(self);
  if (self.needs_board()) return run_with_board(self, &allreduce);
  const Arguments& a = self.arguments;
  const Data result = a.receive[0];
  const Data mine = a.in_place ? result : a.send[0];
  return allreduce_on(self, mine, result, *a.op);
}

Task allreduce_on(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  switch (comm.choose(Kind::allreduce, result.bytes(), !op.commutative(),
                      can_share(comm, *mine.type))) {
  case Algorithm::leaders:
    return allreduce_leaders(comm, mine, result, op);
  case Algorithm::slices:
    return allreduce_slices(comm, mine, result, op);
  case Algorithm::shared:
    return allreduce_shared(comm, mine, result, op);
  case Algorithm::direct:
    return allreduce_direct(comm, mine, result, op);
  case Algorithm::pieces:
    return allreduce_pieces(comm, mine, result, op);
  case Algorithm::rabenseifner:
    return allreduce_rabenseifner(comm, mine, result, op);
  case Algorithm::ring:
    return allreduce_ring(comm, mine, result, op);
  default:
    return allreduce_recursive_doubling(comm, mine, result, op);
  }
}

// Everybody sends its part to everybody and combines all of them, from the last rank to the first:
// one step, (n - 1) m bytes a rank.
Task allreduce_direct(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  const int n = comm.size();
  const int rank = comm.rank();
  if (mine.bytes() == 0) co_return;
  Scratch parts(comm, *mine.type, n * mine.count);
  const auto part = [&](int i) { return slice(parts.data(), i * mine.count, mine.count); };
  Batch batch(comm);
  for (int distance = 1; distance < n; ++distance)
    batch.send((rank + distance) % n, mine);
  for (int distance = 1; distance < n; ++distance) {
    const int from = (rank + n - distance) % n;
    batch.receive(from, part(from));
  }
  co_await batch;
  const Data sum = part(n - 1);
  if (rank == n - 1) copy(mine, sum);
  for (int i = n - 2; i >= 0; --i) {
    const void* from = i == rank ? mine.address : part(i).address;
    op.apply(from, sum.address, sum.count, *sum.type);
  }
  copy(sum, result);
}

// Everybody sends each piece to the rank that combines it, and that its sum to everybody: two
// steps, 2m bytes out and in.
Task allreduce_pieces(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  const Slices slices(comm, {mine.count, comm.size()});
  co_await reduce_scatter_direct(comm, mine, slices.blocks(mine), slices.of(result, comm.rank()),
                                 op);
  co_await allgather_direct(comm, slices.blocks(result));
}

// Pairs at distance 1, 2, 4, ... exchange what they have: log2(n) steps of m, two more where n is
// not a power of two.
Task allreduce_recursive_doubling(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  const Fold fold(comm.size(), op.commutative() ? Fold::Who::last : Fold::Who::neighbours);
  const int rank = comm.rank();
  const int place = fold.place(rank);
  const int partner = fold.partner(rank);
  if (mine.bytes() == 0) co_return;
  if (mine.address != result.address) copy(mine, result);
  Batch batch(comm);
  if (place < 0) {
    batch.send(partner, result);
    co_await batch;
    batch.receive(partner, result);
    co_await batch;
    co_return;
  }
  Scratch spare(comm, *mine.type, mine.count);
  Partial partial(op, result, spare.data());
  const auto add = [&](int from) { from < rank ? partial.add_below() : partial.add_above(); };
  if (partner >= 0) {
    batch.receive(partner, partial.spare());
    co_await batch;
    add(partner);
  }
  for (int bit = 1; bit < fold.size; bit *= 2) {
    const int other = fold.rank(place ^ bit);
    batch.send(other, partial.value());
    batch.receive(other, partial.spare());
    co_await batch;
    add(other);
  }
  if (partner >= 0) {
    batch.send(partner, partial.value());
    co_await batch;
  }
  partial.store(result);
}

// Reduce-scatter by halving, then allgather: 2 log2(n) steps, about 2m bytes a rank. Combines ranks
// out of order.
Task allreduce_rabenseifner(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  const Pieces pieces{mine.count, comm.size()};
  co_await reduce_scatter_pieces(comm, pieces, mine, result, op);
  co_await allgather_pieces(comm, pieces, result);
}

// n pieces go round a ring twice, first growing, then finished: 2 (n - 1) steps, 2m bytes a rank,
// always to the same neighbour. Combines ranks out of order.
Task allreduce_ring(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  const int n = comm.size();
  const int rank = comm.rank();
  if (mine.bytes() == 0) co_return;
  if (mine.address != result.address) copy(mine, result);
  const int right = (rank + 1) % n;
  const int left = (rank + n - 1) % n;
  const Pieces pieces{mine.count, n};
  Scratch spare(comm, *mine.type, pieces.begin(1));
  Batch batch(comm);
  for (int step = 0; step < n - 1; ++step) {
    const int out = (rank - step + n) % n;
    const int in = (rank - step - 1 + n) % n;
    const Data grown = pieces(result, in, in + 1);
    const Data sent = pieces(result, out, out + 1);
    if (grown.count > 0) batch.receive(left, slice(spare.data(), 0, grown.count));
    if (sent.count > 0) batch.send(right, sent);
    co_await batch;
    op.apply(spare.data().address, grown.address, grown.count, *grown.type);
  }
  for (int step = 0; step < n - 1; ++step) {
    const int out = (rank + 1 - step + n) % n;
    const int in = (rank - step + n) % n;
    const Data finished = pieces(result, in, in + 1);
    const Data sent = pieces(result, out, out + 1);
    if (finished.count > 0) batch.receive(left, finished);
    if (sent.count > 0) batch.send(right, sent);
    co_await batch;
  }
}

} // namespace macadam::coll
