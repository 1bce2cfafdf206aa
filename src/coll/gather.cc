// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"

#include <algorithm>

namespace macadam::coll {
namespace {

// What this rank contributes: its block of the receive buffer if it is the root and in place.
Data contribution(Collective& self) {
  const Arguments& a = self.arguments;
  return a.in_place ? a.receive[self.rank()] : a.send[0];
}

void keep_own(Collective& self) {
  const Arguments& a = self.arguments;
  if (self.rank() == a.root && !a.in_place) copy(a.send[0], a.receive[self.rank()]);
}

Task gather_by(Algorithm algorithm, Comm& comm, Data mine, Blocks all, int root) {
  switch (algorithm) {
  case Algorithm::leaders:
    return gather_leaders(comm, mine, all, root);
  case Algorithm::shared:
    return gather_shared(comm, mine, all, root);
  case Algorithm::single_copy:
    return gather_single_copy(comm, mine, all, root);
  case Algorithm::binomial:
    return gather_binomial(comm, mine, all, root);
  default:
    return gather_direct(comm, mine, all, root);
  }
}

} // namespace

Task gather(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_gather(self);
  if (self.needs_board()) return run_with_board(self, &gather);
  const Arguments& a = self.arguments;
  const Data mine = contribution(self);
  const Algorithm algorithm = self.choose(Kind::gather, mine.bytes());
  if (algorithm != Algorithm::single_copy) keep_own(self);
  return gather_by(algorithm, self, mine, a.receive, a.root);
}

Task gather_on(Comm& comm, Data mine, Blocks all, int root) {
  return gather_by(comm.choose(Kind::gather, mine.bytes()), comm, mine, all, root);
}

// Only the root knows all the counts, so there is nothing to choose by.
Task gatherv(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_gather(self);
  const Arguments& a = self.arguments;
  keep_own(self);
  return gather_direct(self, contribution(self), a.receive, a.root);
}

// Everybody sends to the root: one step, n - 1 messages at the root, nothing copied.
Task gather_direct(Comm& comm, Data mine, Blocks all, int root, bool stays) {
  Batch batch(comm);
  if (stays) batch.stay();
  if (comm.rank() != root) {
    if (mine.bytes() > 0) batch.send(root, mine);
  } else {
    for (int distance = 1; distance < comm.size(); ++distance) {
      const int from = (root + distance) % comm.size();
      const Data block = all[from];
      if (block.bytes() > 0) batch.receive(from, block);
    }
  }
  co_await batch;
}

// A binomial tree: log2(n) steps, log2(n) messages at the root, each block copied on its way.
// Blocks stand in packed copies, in the order of the ranks from this one on. Regular blocks only.
Task gather_binomial(Comm& comm, Data mine, Blocks all, int root) {
  const int n = comm.size();
  const int place = (comm.rank() - root + n) % n;
  const std::size_t block = mine.bytes();
  if (block == 0) co_return;
  int bits = 1; // of our subtree: it has places [place, place + bits)
  while (bits < n && (place & bits) == 0)
    bits *= 2;
  const int held = std::min(bits, n - place);
  Scratch packed(comm, static_cast<std::size_t>(held) * block);
  const auto piece = [&](int first, int count) {
    return comm.bytes(packed.bytes() + static_cast<std::size_t>(first) * block,
                      static_cast<std::size_t>(count) * block);
  };
  Batch batch(comm);
  for (int bit = 1; bit < bits && place + bit < n; bit *= 2) {
    batch.receive((place + bit + root) % n, piece(bit, std::min(bit, n - place - bit)));
  }
  if (place != 0) {
    copy(mine, piece(0, 1));
    co_await batch;
    batch.send((place - bits + root) % n, piece(0, held));
    co_await batch;
  } else {
    co_await batch;
    for (int i = 1; i < n; ++i)
      copy(piece(i, 1), all[(root + i) % n]);
  }
}

} // namespace macadam::coll
