// SPDX-License-Identifier: BSD-3-Clause
#include "coll/batch.h"
#include "coll/operations.h"

#include <algorithm>
#include <cstdlib>
#include <span>

namespace macadam::coll {
namespace {

// Calls `visit` with the position of each source, in the order in which messages of the same rank
// are meant for them: several edges between two ranks are told apart by their order alone.
template <class Visit>
void for_each_source(const Neighbors& neighbors, Visit visit) {
  const auto sources = static_cast<int>(neighbors.sources.size());
  for (int step = 0; step < sources; ++step)
    visit(neighbors.source_at(step));
}

// Copies what this rank has for itself: its n-th destination is its n-th source. Returns how many
// more sources than destinations there are, which should be none.
template <class BlockFor>
int copy_own(const Collective& self, BlockFor block_for, Batch& batch) {
  const Neighbors& neighbors = self.arguments.neighbors;
  const auto destinations = neighbors.destinations;
  auto to = std::find(destinations.begin(), destinations.end(), self.rank());
  int unpaired = 0;
  for_each_source(neighbors, [&](int i) {
    if (neighbors.sources[static_cast<std::size_t>(i)] != self.rank()) return;
    if (to == destinations.end()) {
      ++unpaired;
      return;
    }
    batch.copy(block_for(static_cast<int>(to - destinations.begin())), self.arguments.receive[i]);
    to = std::find(to + 1, destinations.end(), self.rank());
  });
  return unpaired - static_cast<int>(std::count(to, destinations.end(), self.rank()));
}

// Receives from all neighbours, then sends to all, and no step more: whoever sends finds the
// receive posted or learns of it, and nobody waits for ranks that are no neighbours. What a rank
// has for itself it copies, last, when the others have theirs or can fetch it. `block_for(i)` is
// the block for destination i.
template <class BlockFor>
void start(const Collective& self, BlockFor block_for, Batch& batch) {
  const Neighbors& neighbors = self.arguments.neighbors;
  const Blocks& in = self.arguments.receive;
  const std::span<const int> sources = neighbors.sources, destinations = neighbors.destinations;
  for_each_source(neighbors, [&](int i) {
    const int from = sources[static_cast<std::size_t>(i)];
    if (from == MPI_PROC_NULL || from == self.rank()) return;
    if (const Data block = in[i]; block.bytes() > 0) batch.receive(from, block);
  });
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    const int to = destinations[i];
    if (to == MPI_PROC_NULL || to == self.rank()) continue;
    if (const Data block = block_for(static_cast<int>(i)); block.bytes() > 0) batch.send(to, block);
  }
  if (const int unpaired = copy_own(self, block_for, batch); unpaired != 0) [[unlikely]] {
    batch.note(base::make_error(
        MPI_ERR_TOPOLOGY,
        "rank {} has {} edges {} itself too many: each has to be named both as a source and as a "
        "destination when the topology is made",
        self.rank(), std::abs(unpaired), unpaired > 0 ? "from" : "to"));
  }
}

} // namespace

Task neighbor_allgather(Collective& self) {
  Batch batch(self);
  start(
      self, [&](int) { return self.arguments.send[0]; }, batch);
  co_await batch;
}

Task neighbor_alltoall(Collective& self) {
  Batch batch(self);
  start(
      self, [&](int i) { return self.arguments.send[i]; }, batch);
  co_await batch;
}

} // namespace macadam::coll
