// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"

#include <algorithm>

namespace macadam::coll {
namespace {

void keep_own(Collective& self) {
  const Arguments& a = self.arguments;
  if (self.rank() == a.root && !a.in_place) copy(a.send[self.rank()], a.receive[0]);
}

// What this rank gets: at the root, with everything in place, its block stays where it is.
Data share(Collective& self) {
  const Arguments& a = self.arguments;
  return a.in_place ? a.send[self.rank()] : a.receive[0];
}

Task scatter_by(Algorithm algorithm, Comm& comm, Blocks all, Data mine, int root) {
  switch (algorithm) {
  case Algorithm::leaders:
    return scatter_leaders(comm, all, mine, root);
  case Algorithm::shared:
    return scatter_shared(comm, all, mine, root);
  case Algorithm::single_copy:
    return scatter_single_copy(comm, all, mine, root);
  case Algorithm::binomial:
    return scatter_binomial(comm, all, mine, root);
  default:
    return scatter_direct(comm, all, mine, root);
  }
}

} // namespace

Task scatter(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_scatter(self);
  if (self.needs_board()) return run_with_board(self, &scatter);
  const Arguments& a = self.arguments;
  const Data mine = share(self);
  const Algorithm algorithm = self.choose(Kind::scatter, mine.bytes());
  if (algorithm != Algorithm::single_copy) keep_own(self);
  return scatter_by(algorithm, self, a.send, mine, a.root);
}

Task scatter_on(Comm& comm, Blocks all, Data mine, int root) {
  return scatter_by(comm.choose(Kind::scatter, mine.bytes()), comm, all, mine, root);
}

// Only the root knows all the counts, so there is nothing to choose by.
Task scatterv(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_scatter(self);
  const Arguments& a = self.arguments;
  keep_own(self);
  return scatter_direct(self, a.send, share(self), a.root);
}

// The root sends to everybody: one step, n - 1 messages at the root, nothing copied.
Task scatter_direct(Comm& comm, Blocks all, Data mine, int root) {
  Batch batch(comm);
  if (comm.rank() != root) {
    if (mine.bytes() > 0) batch.receive(root, mine);
  } else {
    for (int distance = 1; distance < comm.size(); ++distance) {
      const int to = (root + distance) % comm.size();
      const Data block = all[to];
      if (block.bytes() > 0) batch.send(to, block);
    }
  }
  co_await batch;
}

// A binomial tree: log2(n) steps, log2(n) messages at the root, each block copied on its way.
// Regular blocks only.
Task scatter_binomial(Comm& comm, Blocks all, Data mine, int root) {
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
  if (place != 0) {
    batch.receive((place - bits + root) % n, piece(0, held));
    co_await batch;
  } else {
    for (int i = 1; i < n; ++i)
      copy(all[(root + i) % n], piece(i, 1));
  }
  for (int bit = bits / 2; bit > 0; bit /= 2) {
    if (place + bit >= n) continue;
    batch.send((place + bit + root) % n, piece(bit, std::min(bit, n - place - bit)));
  }
  if (place != 0) copy(piece(0, 1), mine);
  co_await batch;
}

} // namespace macadam::coll
