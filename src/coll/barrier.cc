// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

#include <bit>

namespace macadam::coll {
namespace {

Task barrier_even_pairs(Comm& comm) {
  const int half = comm.size() / 2;
  const int mine = comm.rank() / 2;
  const bool odd = comm.rank() % 2 != 0;
  const Data nothing = comm.bytes(nullptr, 0);
  Batch batch(comm);
  for (int reach = 1; reach < comm.size(); reach *= 2) { // of how many a rank knows
    const int shift = (reach - 1) % half;
    const int other = odd ? 2 * ((mine + half - shift) % half) : 2 * ((mine + shift) % half) + 1;
    batch.send(other, nothing);
    batch.receive(other, nothing);
    co_await batch;
  }
}

} // namespace

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
  case Algorithm::pairs:
    return barrier_pairs(comm);
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

// As many steps as dissemination, with about half the partners: in step k the even rank 2j and the
// odd rank 2((j + 2^k - 1) mod n/2) + 1 tell each other (the graphs of Knoedel, New gossips and
// telephones, 1975). Powers of two keep the partners that other collectives have, too; odd numbers
// have no pairs.
Task barrier_pairs(Comm& comm) {
  const int n = comm.size();
  if (std::has_single_bit(static_cast<unsigned>(n))) return barrier_recursive_doubling(comm);
  return n % 2 == 0 ? barrier_even_pairs(comm) : barrier_dissemination(comm);
}

} // namespace macadam::coll
