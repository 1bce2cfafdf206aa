// SPDX-License-Identifier: BSD-3-Clause
#include "coll/batch.h"
#include "coll/operations.h"

namespace macadam::coll {
namespace {

// Receives from all neighbours, then sends to all, and no step more: whoever sends finds the
// receive posted or learns of it, and nobody waits for ranks that are no neighbours.
//
// Several edges between two ranks are told apart by their order alone. In a grid whose dimension
// has one or two positions, the block for the neighbour before is what that neighbour gets from the
// one after it; so the receives of a dimension are posted in the opposite order of the sends (MPI
// 5.0, section 8.6).
void start(const Neighbors& neighbors, const Blocks& in, const Blocks* out, const Data& same,
           Batch& batch) {
  const auto sources = static_cast<int>(neighbors.sources.size());
  for (int step = 0; step < sources; ++step) {
    const int i = neighbors.grid ? step ^ 1 : step;
    const int from = neighbors.sources[static_cast<std::size_t>(i)];
    const Data block = in[i];
    if (from != MPI_PROC_NULL && block.bytes() > 0) batch.receive(from, block);
  }
  int i = 0;
  for (const int to : neighbors.destinations) {
    const Data block = out != nullptr ? (*out)[i] : same;
    ++i;
    if (to != MPI_PROC_NULL && block.bytes() > 0) batch.send(to, block);
  }
}

} // namespace

Task neighbor_allgather(Collective& self) {
  const Arguments& a = self.arguments;
  Batch batch(self);
  start(a.neighbors, a.receive, nullptr, a.send[0], batch);
  co_await batch;
}

Task neighbor_alltoall(Collective& self) {
  const Arguments& a = self.arguments;
  Batch batch(self);
  start(a.neighbors, a.receive, &a.send, {}, batch);
  co_await batch;
}

} // namespace macadam::coll
