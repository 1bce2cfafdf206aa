// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/halving.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

#include <algorithm>

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
  case Algorithm::pieces:
    return reduce_pieces(comm, mine, result, op, root);
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

// Everybody sends each piece to the rank that combines it, and that its sum to the root: two steps,
// m bytes out and in.
Task reduce_pieces(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  if (mine.bytes() == 0) co_return;
  const bool is_root = comm.rank() == root;
  const Slices slices(comm, {mine.count, comm.size()});
  const MPI_Count count = slices.of(mine, comm.rank()).count;
  Scratch own(comm, *mine.type, is_root ? 0 : count);
  const Data sum = is_root ? slices.of(result, root) : Data{own.data().address, count, mine.type};
  co_await reduce_scatter_direct(comm, mine, slices.blocks(mine), sum, op);
  co_await gather_direct(comm, sum, slices.blocks(result), root, true);
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

// Reduce-scatter by halving, then a gather along the same tree: 2 log2(n) steps, 2m bytes at the
// root and less at others. Combines ranks out of order. Of a long vector one part after the other,
// as what the others than the root have combined is in memory of the library's.
Task reduce_rabenseifner(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  if (mine.bytes() == 0) co_return;
  const bool is_root = comm.rank() == root;
  const auto longest = static_cast<MPI_Count>(mem::Buffers::largest_class);
  const MPI_Count each = std::clamp<MPI_Count>(longest / mine.type->size(), 1, mine.count);
  Scratch own(comm, *mine.type, is_root ? 0 : each);
  for (MPI_Count first = 0; first < mine.count; first += each) {
    const MPI_Count count = std::min(each, mine.count - first);
    const Data sum = is_root ? slice(result, first, count) : slice(own.data(), 0, count);
    const Pieces pieces{count, comm.size()};
    co_await reduce_scatter_pieces(comm, pieces, slice(mine, first, count), sum, op);
    co_await gather_pieces(comm, pieces, sum, root);
  }
}

} // namespace macadam::coll
