// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/inter.h"
#include "coll/operations.h"

#include <algorithm>
#include <bit>

namespace macadam::coll {

Task alltoall(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_alltoall(self);
  if (self.needs_board()) return run_with_board(self, &alltoall);
  const Arguments& a = self.arguments;
  if (a.in_place) {
    const Algorithm algorithm = self.choose(Kind::alltoall, a.receive[0].bytes());
    return algorithm == Algorithm::shared || algorithm == Algorithm::single_copy
               ? alltoall_shared(self, a.receive, a.receive)
               : alltoall_in_place(self, a.receive);
  }
  copy(a.send[self.rank()], a.receive[self.rank()]);
  return alltoall_on(self, a.send, a.receive);
}

Task alltoall_on(Comm& comm, Blocks out, Blocks in) {
  switch (comm.choose(Kind::alltoall, in[0].bytes())) {
  case Algorithm::slices:
    return alltoall_slices(comm, out, in);
  case Algorithm::shared:
    return alltoall_shared(comm, out, in);
  case Algorithm::single_copy:
    return alltoall_single_copy(comm, out, in);
  case Algorithm::direct:
    return alltoall_direct(comm, out, in);
  case Algorithm::bruck:
    return alltoall_bruck(comm, out, in);
  default:
    return alltoall_pairwise(comm, out, in);
  }
}

// A rank knows its own counts only. That is enough to choose between these two: their messages are
// the same, only their order differs.
Task alltoallv(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_alltoall(self);
  const Arguments& a = self.arguments;
  if (a.in_place) return alltoall_in_place(self, a.receive);
  copy(a.send[self.rank()], a.receive[self.rank()]);
  switch (self.choose(Kind::alltoall, UINT64_MAX, false, false)) {
  case Algorithm::direct:
    return alltoall_direct(self, a.send, a.receive);
  default:
    return alltoall_pairwise(self, a.send, a.receive);
  }
}

namespace {

// Short messages each way, so that a rank has few requests, and makes few connections at a time.
constexpr int most_at_once = 32;

// The messages of ranks that are 1, 2, ... away, `most` at once, and no more than bring or take so
// many bytes, one each way at least. Ranks may group them differently: the one whose group ends
// first can always finish it, as all others have come to what it waits for.
Task alltoall_in_groups(Comm& comm, Blocks out, Blocks in, int most, std::size_t most_bytes) {
  const int n = comm.size();
  const auto from = [&](int distance) { return (comm.rank() + n - distance) % n; };
  const auto to = [&](int distance) { return (comm.rank() + distance) % n; };
  Batch batch(comm);
  for (int first = 1, next = 1; first < n; first = next) {
    for (std::size_t bytes = 0; next < n && next - first < most && bytes < most_bytes; ++next) {
      const Data block = in[from(next)];
      bytes += std::max(block.bytes(), out[to(next)].bytes());
      if (block.bytes() > 0) batch.receive(from(next), block);
    }
    for (int distance = first; distance < next; ++distance) {
      const Data block = out[to(distance)];
      if (block.bytes() > 0) batch.send(to(distance), block);
    }
    co_await batch;
  }
}

} // namespace

// All messages at once: one step, n - 1 messages each way.
Task alltoall_direct(Comm& comm, Blocks out, Blocks in) {
  return alltoall_in_groups(comm, out, in, comm.size(), SIZE_MAX);
}

// One long message out and one in at a time, or a few short ones, so that no rank is flooded.
Task alltoall_pairwise(Comm& comm, Blocks out, Blocks in) {
  return alltoall_in_groups(comm, out, in, most_at_once, comm.shared->segments.exchange);
}

// A block with i ranks to go travels the bits of i, together with all others that take the same
// hop: log2(n) steps of n m / 2. On a power of two of ranks, i is what both ranks differ in
// instead, so that a rank has one partner for each bit and not two. Regular blocks only.
Task alltoall_bruck(Comm& comm, Blocks out, Blocks in) {
  const int n = comm.size();
  const int rank = comm.rank();
  const std::size_t block = in[0].bytes();
  if (block == 0) co_return;
  const auto slots = static_cast<std::size_t>(n);
  Scratch held(comm, slots * block); // slot i: a block that has i ranks to go, or had
  Scratch leaving(comm, (slots + 1) / 2 * block);
  Scratch coming(comm, (slots + 1) / 2 * block);
  const bool pairs = std::has_single_bit(static_cast<unsigned>(n));
  const auto ahead = [&](int i) { return pairs ? rank ^ i : (rank + i) % n; };
  const auto behind = [&](int i) { return pairs ? rank ^ i : (rank + n - i) % n; };
  const auto slot = [&](const Scratch& scratch, int i) {
    return comm.bytes(scratch.bytes() + static_cast<std::size_t>(i) * block, block);
  };
  for (int i = 1; i < n; ++i)
    copy(out[ahead(i)], slot(held, i));
  Batch batch(comm);
  for (int bit = 1; bit < n; bit *= 2) {
    int count = 0;
    for (int i = bit; i < n; ++i) {
      if ((i & bit) != 0) copy(slot(held, i), slot(leaving, count++));
    }
    const std::size_t bytes = static_cast<std::size_t>(count) * block;
    batch.receive(behind(bit), comm.bytes(coming.bytes(), bytes));
    batch.send(ahead(bit), comm.bytes(leaving.bytes(), bytes));
    co_await batch;
    count = 0;
    for (int i = bit; i < n; ++i) {
      if ((i & bit) != 0) copy(slot(coming, count++), slot(held, i));
    }
  }
  for (int i = 1; i < n; ++i)
    copy(slot(held, i), in[behind(i)]);
}

// In step s, ranks whose sum is s modulo n swap their blocks: n steps of m.
Task alltoall_in_place(Comm& comm, Blocks all) {
  const int n = comm.size();
  const int rank = comm.rank();
  std::size_t longest = 0;
  for (int i = 0; i < n; ++i)
    longest = std::max(longest, all[i].bytes());
  Scratch leaving(comm, longest);
  Batch batch(comm);
  for (int step = 0; step < n; ++step) {
    const int partner = (step - rank + n) % n;
    const Data block = all[partner];
    if (partner == rank || block.bytes() == 0) continue;
    const Data old = comm.bytes(leaving.bytes(), block.bytes());
    copy(block, old);
    batch.receive(partner, block);
    batch.send(partner, old);
    co_await batch;
  }
}

} // namespace macadam::coll
