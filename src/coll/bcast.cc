// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"

#include <algorithm>

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

namespace {

// The bytes [first, last) of `total` that belong to places [from, to) of n, cut evenly.
struct Cut {
  std::size_t total;
  std::size_t piece;
  Cut(std::size_t bytes, int n)
      : total(bytes),
        piece((bytes + static_cast<std::size_t>(n) - 1) / static_cast<std::size_t>(n)) {}
  [[nodiscard]] std::size_t begin(int place) const {
    return std::min(total, static_cast<std::size_t>(place) * piece);
  }
  [[nodiscard]] std::size_t bytes(int from, int to) const { return begin(to) - begin(from); }
};

} // namespace

// The root scatters n pieces down a binomial tree, a ring passes them round: log2(n) + n - 1 steps,
// but only about 2m bytes through each rank.
Task bcast_scatter_allgather(Comm& comm, Data data, int root) {
  const int n = comm.size();
  const int place = (comm.rank() - root + n) % n;
  Packed packed(comm, data);
  if (place == 0) packed.pack();
  const Cut cut(packed.size(), n);
  const auto pieces = [&](int from, int to) {
    return packed.bytes(cut.begin(from), cut.bytes(from, to));
  };
  Batch batch(comm);

  int bit = 1;
  while (bit < n && (place & bit) == 0)
    bit *= 2;
  if (place != 0 && cut.bytes(place, std::min(place + bit, n)) > 0) {
    batch.receive((place - bit + root) % n, pieces(place, std::min(place + bit, n)));
    co_await batch;
  }
  for (bit /= 2; bit > 0; bit /= 2) {
    const int child = place + bit;
    const int end = std::min(child + bit, n);
    if (child < n && cut.bytes(child, end) > 0) batch.send((child + root) % n, pieces(child, end));
  }
  co_await batch;

  const int right = (comm.rank() + 1) % n;
  const int left = (comm.rank() + n - 1) % n;
  for (int step = 0; step < n - 1; ++step) {
    const int out = (place - step + n) % n;
    const int in = (place - step - 1 + n) % n;
    if (cut.bytes(in, in + 1) > 0) batch.receive(left, pieces(in, in + 1));
    if (cut.bytes(out, out + 1) > 0) batch.send(right, pieces(out, out + 1));
    co_await batch;
  }
  if (place != 0) packed.unpack();
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
  Batch in(comm);
  Batch out(comm);
  if (place != 0 && packed.size() > 0) in.receive(previous, piece(0));
  for (std::size_t first = 0; first < packed.size(); first += segment) {
    co_await in;
    if (place != 0 && first + segment < packed.size()) in.receive(previous, piece(first + segment));
    co_await out;
    if (place != n - 1) out.send(next, piece(first));
  }
  co_await out;
  if (place != 0) packed.unpack();
}

} // namespace macadam::coll
