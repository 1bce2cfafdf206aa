// SPDX-License-Identifier: BSD-3-Clause
#include "coll/batch.h"
#include "coll/operations.h"

#include <algorithm>
#include <cstdlib>
#include <span>

namespace macadam::coll {
namespace {

using Positions = std::span<const int>;

enum class Lengths { alike, each_its_own };

// Short blocks of parallel edges travel in one message, one behind the other, where all blocks are
// of one length: then both ends count the same bytes here, or are wrong and told so. 0: each has a
// message of its own.
template <class BlockAt>
std::size_t together(const Collective& self, Lengths lengths, Positions edges, BlockAt block_at) {
  if (edges.size() < 2 || lengths != Lengths::alike) return 0;
  std::size_t bytes = 0;
  for (const int i : edges)
    bytes += block_at(i).bytes();
  return bytes <= self.shared->segments.parallel_edges ? bytes : 0;
}

template <class BlockAt>
std::size_t together(const Collective& self, Lengths lengths, const Edges& side, BlockAt block_at) {
  std::size_t bytes = 0;
  if (side.parallel()) {
    side.for_each_rank([&](int rank, Positions edges) {
      if (rank != self.rank()) bytes += together(self, lengths, edges, block_at);
    });
  }
  return bytes;
}

// What a rank has for itself: its n-th edge to itself is its n-th edge from itself.
template <class BlockFor>
void copy_own(const Collective& self, Positions from, Positions to, BlockFor block_for,
              Batch& batch) {
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i)
    batch.copy(block_for(to[i]), self.arguments.receive[from[i]]);
  if (from.size() == to.size()) return;
  const auto unpaired = static_cast<int>(from.size()) - static_cast<int>(to.size());
  batch.note(base::make_error(
      MPI_ERR_TOPOLOGY,
      "rank {} has {} edges {} itself too many: each has to be named both as a source and as a "
      "destination when the topology is made",
      self.rank(), std::abs(unpaired), unpaired > 0 ? "from" : "to"));
}

// Receives from all neighbours, then sends to all, and no step more: whoever sends finds the
// receive posted or learns of it, and nobody waits for ranks that are no neighbours. What a rank
// has for itself it copies, last, when the others have theirs or can fetch it. `block_for(i)` is
// the block for destination i.
template <class BlockFor>
Task exchange(Collective& self, Lengths lengths, BlockFor block_for) {
  const Edges& sources = *self.arguments.sources;
  const Edges& destinations = *self.arguments.destinations;
  const Blocks& in = self.arguments.receive;
  const auto block_from = [&in](int i) { return in[i]; };
  const std::size_t arriving = together(self, lengths, sources, block_from);
  const Scratch memory(self, arriving + together(self, lengths, destinations, block_for));
  std::byte* next = memory.bytes();
  Batch batch(self);
  Positions own_from, own_to;

  sources.for_each_rank([&](int rank, Positions edges) {
    if (rank == self.rank()) {
      own_from = edges;
    } else if (const std::size_t bytes = together(self, lengths, edges, block_from); bytes > 0) {
      batch.receive(rank, self.bytes(next, bytes));
      next += bytes;
    } else {
      for (const int i : edges)
        if (const Data block = in[i]; block.bytes() > 0) batch.receive(rank, block);
    }
  });
  destinations.for_each_rank([&](int rank, Positions edges) {
    if (rank == self.rank()) {
      own_to = edges;
    } else if (const std::size_t bytes = together(self, lengths, edges, block_for); bytes > 0) {
      const std::byte* const message = next;
      for (const int i : edges) {
        const Data block = block_for(i);
        batch.copy(block, self.bytes(next, block.bytes()));
        next += block.bytes();
      }
      batch.send(rank, self.bytes(message, bytes));
    } else {
      for (const int i : edges)
        if (const Data block = block_for(i); block.bytes() > 0) batch.send(rank, block);
    }
  });
  copy_own(self, own_from, own_to, block_for, batch);
  co_await batch;

  if (arriving == 0) co_return;
  next = memory.bytes();
  sources.for_each_rank([&](int rank, Positions edges) {
    if (rank == self.rank() || together(self, lengths, edges, block_from) == 0) return;
    for (const int i : edges) {
      const Data block = in[i];
      copy(self.bytes(next, block.bytes()), block);
      next += block.bytes();
    }
  });
}

} // namespace

Task neighbor_allgather(Collective& self) {
  return exchange(self, Lengths::alike, [&send = self.arguments.send](int) { return send[0]; });
}

Task neighbor_allgatherv(Collective& self) {
  return exchange(self, Lengths::each_its_own,
                  [&send = self.arguments.send](int) { return send[0]; });
}

Task neighbor_alltoall(Collective& self) {
  return exchange(self, Lengths::alike, [&send = self.arguments.send](int i) { return send[i]; });
}

Task neighbor_alltoallv(Collective& self) {
  return exchange(self, Lengths::each_its_own,
                  [&send = self.arguments.send](int i) { return send[i]; });
}

} // namespace macadam::coll
