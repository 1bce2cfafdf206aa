// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

namespace macadam::coll {

Task barrier(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_barrier(self);
  if (self.needs_board()) return run_with_board(self, &barrier);
  return barrier_on(self);
}

Task barrier_on(Comm& comm) {
  switch (comm.choose(Kind::barrier, 0)) {
  case Algorithm::leaders:
    return barrier_leaders(comm);
  case Algorithm::shared:
    return barrier_shared(comm);
  case Algorithm::direct:
    return barrier_direct(comm);
  case Algorithm::dissemination:
    return barrier_dissemination(comm);
  default:
    return barrier_recursive_doubling(comm);
  }
}

// Every rank tells every other: one step, n - 1 messages a rank.
Task barrier_direct(Comm& comm) {
  const int n = comm.size();
  const Data nothing = comm.bytes(nullptr, 0);
  Batch batch(comm);
  for (int distance = 1; distance < n; ++distance) {
    batch.send((comm.rank() + distance) % n, nothing);
  }
  for (int distance = 1; distance < n; ++distance) {
    batch.receive((comm.rank() + n - distance) % n, nothing);
  }
  co_await batch;
}

// In step k a rank knows of the 2^k ranks before it and tells the one 2^k after it: log2(n) steps.
Task barrier_dissemination(Comm& comm) {
  const int n = comm.size();
  const Data nothing = comm.bytes(nullptr, 0);
  Batch batch(comm);
  for (int distance = 1; distance < n; distance *= 2) {
    batch.send((comm.rank() + distance) % n, nothing);
    batch.receive((comm.rank() + n - distance) % n, nothing);
    co_await batch;
  }
}

// Pairs at distance 1, 2, 4, ... tell each other: log2(n) steps and partners, two more steps where
// n is not a power of two.
Task barrier_recursive_doubling(Comm& comm) {
  const Fold fold(comm.size(), Fold::Who::last);
  const int place = fold.place(comm.rank());
  const int partner = fold.partner(comm.rank());
  const Data nothing = comm.bytes(nullptr, 0);
  Batch batch(comm);
  if (place < 0) {
    batch.send(partner, nothing);
    batch.receive(partner, nothing);
    co_await batch;
    co_return;
  }
  if (partner >= 0) {
    batch.receive(partner, nothing);
    co_await batch;
  }
  for (int bit = 1; bit < fold.size; bit *= 2) {
    const int other = fold.rank(place ^ bit);
    batch.send(other, nothing);
    batch.receive(other, nothing);
    co_await batch;
  }
  if (partner >= 0) batch.send(partner, nothing);
  co_await batch;
}

} // namespace macadam::coll
