// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

namespace macadam::coll {

Task reduce(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_reduce(self);
  if (self.needs_board()) return run_with_board(self, &reduce);
  const Arguments& a = self.arguments;
  const Data mine = a.in_place ? a.receive[0] : a.send[0];
  // Only the root has a place for the result.
  const Data result = self.rank() == a.root ? a.receive[0] : Data{nullptr, mine.count, mine.type};
  return reduce_on(self, mine, result, *a.op, a.root);
}

Task reduce_on(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  switch (comm.choose(Kind::reduce, mine.bytes(), !op.commutative(), can_share(comm, *mine.type))) {
  case Algorithm::leaders:
    return reduce_leaders(comm, mine, result, op, root);
  case Algorithm::slices:
    return reduce_slices(comm, mine, result, op, root);
  case Algorithm::shared:
    return reduce_shared(comm, mine, result, op, root);
  case Algorithm::direct:
    return reduce_direct(comm, mine, result, op, root);
  case Algorithm::rabenseifner:
    return reduce_rabenseifner(comm, mine, result, op, root);
  default:
    return reduce_binomial(comm, mine, result, op, root);
  }
}

// Everybody sends to the root, which combines from the last rank to the first: one step, n - 1
// messages of m at the root.
Task reduce_direct(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  const int n = comm.size();
  if (mine.bytes() == 0) co_return;
  Batch batch(comm);
  if (comm.rank() != root) {
    batch.send(root, mine);
    co_await batch;
    co_return;
  }
  Scratch parts(comm, *mine.type, n * mine.count);
  const auto part = [&](int i) { return slice(parts.data(), i * mine.count, mine.count); };
  for (int i = 0; i < n; ++i) {
    if (i != root) batch.receive(i, part(i));
  }
  co_await batch;
  const Data sum = part(n - 1);
  if (root == n - 1) copy(mine, sum);
  for (int i = n - 2; i >= 0; --i) {
    const void* from = i == root ? mine.address : part(i).address;
    op.apply(from, sum.address, sum.count, *sum.type);
  }
  copy(sum, result);
}

// A binomial tree over the ranks in their order, to rank 0 and from there to the root: log2(n)
// steps of m, one more where the root is not 0. Operations that commute take the tree that ends at
// the root.
Task reduce_binomial(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  const int n = comm.size();
  const int rank = comm.rank();
  if (mine.bytes() == 0) co_return;
  const int top = op.commutative() ? root : 0;
  const int place = (rank - top + n) % n;
  Batch batch(comm);

  // A leaf has nothing to combine.
  Scratch sum(comm, *mine.type, place % 2 == 0 ? mine.count : 0);
  Scratch spare(comm, *mine.type, place % 2 == 0 ? mine.count : 0);
  if (place % 2 == 0) copy(mine, sum.data());
  Partial partial(op, place % 2 == 0 ? sum.data() : mine, spare.data());
  for (int bit = 1; bit < n; bit *= 2) {
    if ((place & bit) != 0) {
      batch.send((place - bit + top) % n, partial.value());
      co_await batch;
      break;
    }
    if (place + bit >= n) continue;
    batch.receive((place + bit + top) % n, partial.spare());
    co_await batch;
    partial.add_above();
  }
  if (top == root) {
    if (rank == root) partial.store(result);
  } else if (rank == top) {
    batch.send(root, partial.value());
    co_await batch;
  } else if (rank == root) {
    batch.receive(top, result);
    co_await batch;
  }
}

// Reduce-scatter by recursive halving, then a gather along the same tree: 2 log2(n) steps, about 2m
// bytes a rank. Combines ranks out of order.
Task reduce_rabenseifner(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  const Fold fold(comm.size());
  const int rank = comm.rank();
  if (mine.bytes() == 0) co_return;
  Batch batch(comm);
  Scratch own(comm, *mine.type, rank == root ? 0 : mine.count);
  const Data sum = rank == root ? result : own.data();
  if (mine.address != sum.address) copy(mine, sum);
  // The root may be one of those that wait; then the gather ends at its partner.
  const int place = fold.place(rank);
  const bool root_waits = fold.place(root) < 0;
  const int top = fold.place(root_waits ? fold.partner(root) : root);
  const int partner = fold.partner(rank);
  if (place < 0) {
    batch.send(partner, sum);
    co_await batch;
    if (rank == root) {
      batch.receive(partner, result);
      co_await batch;
    }
    co_return;
  }
  Scratch spare(comm, *mine.type, mine.count);
  if (partner >= 0) {
    batch.receive(partner, spare.data());
    co_await batch;
    op.apply(spare.data().address, sum.address, sum.count, *sum.type);
  }

  const Pieces pieces{mine.count, fold.size};
  co_await scatter_halving(comm, fold, pieces, sum, spare.data(), op);
  // A rank that has this bit of `top` is sent the other half.
  int first = place;
  for (int bit = 1; bit < fold.size; bit *= 2) {
    const int other = fold.rank(place ^ bit);
    if ((place & bit) != (top & bit)) {
      const Data given = pieces(sum, first, first + bit);
      if (given.bytes() > 0) batch.send(other, given);
      co_await batch;
      break;
    }
    const Data taken = pieces(sum, first ^ bit, (first ^ bit) + bit);
    if (taken.bytes() > 0) batch.receive(other, taken);
    co_await batch;
    first &= ~bit;
  }
  if (root_waits && place == top) {
    batch.send(root, sum);
    co_await batch;
  }
}

// Recursive halving among the active ranks of `fold`: in the end, the rank at place i has piece i
// of the sum in `sum`; the rest of it is only partly combined.
Task scatter_halving(Comm& comm, Fold fold, Pieces pieces, Data sum, Data spare,
                     const datatype::Op& op) {
  const int place = fold.place(comm.rank());
  Batch batch(comm);
  int first = 0;
  for (int bit = fold.size / 2; bit > 0; bit /= 2) {
    const int partner = place ^ bit;
    const int kept = (place & bit) != 0 ? first + bit : first;
    const int given = (place & bit) != 0 ? first : first + bit;
    const Data keep = pieces(sum, kept, kept + bit);
    const Data give = pieces(sum, given, given + bit);
    const Data incoming = pieces(spare, kept, kept + bit);
    if (keep.bytes() > 0) batch.receive(fold.rank(partner), incoming);
    if (give.bytes() > 0) batch.send(fold.rank(partner), give);
    co_await batch;
    op.apply(incoming.address, keep.address, keep.count, *keep.type);
    first = kept;
  }
}

} // namespace macadam::coll
