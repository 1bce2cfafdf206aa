// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/inter.h"
#include "coll/operations.h"

namespace macadam::coll {

Task barrier(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_barrier(self);
  switch (select(self.shared->rules, Kind::barrier, self.size(), 0)) {
  case Algorithm::direct:
    return barrier_direct(self);
  default:
    return barrier_dissemination(self);
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

} // namespace macadam::coll
