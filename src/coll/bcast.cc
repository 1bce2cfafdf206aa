// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/halving.h"
#include "coll/inter.h"
#include "coll/operations.h"

#include <algorithm>
#include <array>

namespace macadam::coll {

// Ranks may describe the same data by different types and counts, so whatever is decided or cut, is
// decided and cut by bytes.
Task bcast(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_bcast(self);
  if (self.needs_board()) return run_with_board(self, &bcast);
  return bcast_on(self, self.arguments.receive[0], self.arguments.root);
}

Task bcast_on(Comm& comm, Data data, int root) {
  switch (comm.choose(Kind::bcast, data.bytes())) {
  case Algorithm::leaders:
    return bcast_leaders(comm, data, root);
  case Algorithm::shared:
    return bcast_shared(comm, data, root);
  case Algorithm::direct:
    return bcast_direct(comm, data, root);
  case Algorithm::pieces:
    return bcast_pieces(comm, data, root);
  case Algorithm::scatter_allgather:
    return bcast_scatter_allgather(comm, data, root);
  case Algorithm::chain:
    return bcast_chain(comm, data, root);
  default:
    return bcast_binomial(comm, data, root);
  }
}

// The root sends to everybody: one step, n - 1 messages of m at the root.
Task bcast_direct(Comm& comm, Data data, int root) {
  const int n = comm.size();
  if (data.bytes() == 0) co_return;
  Batch batch(comm);
  if (comm.rank() != root) {
    batch.receive(root, data);
  } else {
    for (int distance = 1; distance < n; ++distance)
      batch.send((root + distance) % n, data);
  }
  co_await batch;
}

// A binomial tree: log2(n) steps of m. The subtrees that take longest are served first.
Task bcast_binomial(Comm& comm, Data data, int root) {
  const int n = comm.size();
  if (data.bytes() == 0) co_return;
  const int place = (comm.rank() - root + n) % n;
  Batch batch(comm);
  int bit = 1;
  while (bit < n && (place & bit) == 0)
    bit *= 2;
  if (place != 0) {
    batch.receive((place - bit + root) % n, data);
    co_await batch;
  }
  for (bit /= 2; bit > 0; bit /= 2) {
    if (place + bit < n) batch.send((place + bit + root) % n, data);
  }
  co_await batch;
}

// The root sends a piece to each other rank, which sends it to all but the root: two steps, m bytes
// out and in.
Task bcast_pieces(Comm& comm, Data data, int root) {
  const int n = comm.size();
  const int place = (comm.rank() - root + n) % n;
  if (n == 1 || data.bytes() == 0) co_return;
  Packed packed(comm, data);
  if (place == 0) packed.pack();
  const Data all = packed.bytes(0, packed.size());
  const Pieces pieces{all.count, n - 1};
  const auto piece_of = [&](int its_place) { return pieces(all, its_place - 1, its_place); };
  Batch own(comm);
  Batch others(comm);
  const auto each_other = [&](auto&& call) {
    for (int distance = 1; distance < n; ++distance) {
      const int other = (place + distance) % n;
      if (other != 0) call((other + root) % n, other);
    }
  };
  const auto send = [&](Batch& batch, int to, const Data& piece) {
    if (piece.bytes() > 0) batch.send(to, piece);
  };
  const auto receive = [&](Batch& batch, int from, const Data& piece) {
    if (piece.bytes() > 0) batch.receive(from, piece);
  };
  if (place == 0) {
    each_other([&](int rank, int its_place) { send(own, rank, piece_of(its_place)); });
    co_await own;
    co_return;
  }
  receive(own, root, piece_of(place));
  each_other([&](int rank, int its_place) { receive(others, rank, piece_of(its_place)); });
  co_await own.ended();
  // Even if that failed: the others wait for it, and have errors of their own.
  each_other([&](int rank, int) { send(others, rank, piece_of(place)); });
  co_await others.ended();
  co_await own;
  co_await others;
  packed.unpack();
}

// The root scatters n pieces down a binomial tree, then an allgather: 2 log2(n) steps, but only
// about 2m bytes through each rank.
Task bcast_scatter_allgather(Comm& comm, Data data, int root) {
  Packed packed(comm, data);
  if (comm.rank() == root) packed.pack();
  const Data all = packed.bytes(0, packed.size());
  const Pieces pieces{all.count, comm.size()};
  co_await scatter_pieces(comm, pieces, all, root);
  co_await allgather_pieces(comm, pieces, all);
  if (comm.rank() != root) packed.unpack();
}

// The data run down a chain of all ranks in segments s: m / s + n - 2 steps of s. Each rank
// receives and sends m bytes once, at the same time.
Task bcast_chain(Comm& comm, Data data, int root) {
  constexpr std::size_t segment = 128 << 10;
  const int n = comm.size();
  const int place = (comm.rank() - root + n) % n;
  const int next = (comm.rank() + 1) % n;
  const int previous = (comm.rank() + n - 1) % n;
  Packed packed(comm, data);
  if (place == 0) packed.pack();
  const auto piece = [&](std::size_t first) {
    return packed.bytes(first, std::min(segment, packed.size() - first));
  };
  std::array<Batch, 2> batches{Batch(comm), Batch(comm)};
  auto& [in, out] = batches;
  if (place != 0 && packed.size() > 0) in.receive(previous, piece(0));
  for (std::size_t first = 0; first < packed.size(); first += segment) {
    co_await in.ended();
    if (in.failed()) break;
    if (place != 0 && first + segment < packed.size()) in.receive(previous, piece(first + segment));
    co_await out.ended();
    if (out.failed()) break;
    if (place != n - 1) out.send(next, piece(first));
  }
  co_await finish(comm, batches);
  if (place != 0) packed.unpack();
}

} // namespace macadam::coll
