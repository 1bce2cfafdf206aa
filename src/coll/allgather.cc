// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/halving.h"
#include "coll/inter.h"
#include "coll/operations.h"
#include "coll/reduction.h"

#include <array>

namespace macadam::coll {
namespace {

std::uint64_t average_block(const Comm& comm, const Blocks& blocks) {
  if (blocks.regular()) return blocks[0].bytes();
  std::uint64_t sum = 0;
  for (int i = 0; i < comm.size(); ++i)
    sum += blocks[i].bytes();
  return sum / static_cast<std::uint64_t>(comm.size());
}

} // namespace

Task allgather(Collective& self) {
  if (self.arguments.inside != nullptr) return inter_allgather(self);
  if (self.needs_board()) return run_with_board(self, &allgather);
  const Arguments& a = self.arguments;
  if (!a.in_place) copy(a.send[0], a.receive[self.rank()]);
  return allgather_on(self, a.receive);
}

Task allgather_on(Comm& comm, Blocks all) {
  switch (comm.choose(Kind::allgather, average_block(comm, all), false, true, all.regular())) {
  case Algorithm::slices:
    return allgather_slices(comm, all);
  case Algorithm::shared:
    return allgather_shared(comm, all);
  case Algorithm::direct:
    return allgather_direct(comm, all);
  case Algorithm::bruck:
    return allgather_bruck(comm, all);
  case Algorithm::recursive_doubling:
    return allgather_recursive_doubling(comm, all);
  default:
    return allgather_ring(comm, all);
  }
}

// Everybody sends its block to everybody: one step, n - 1 messages a rank.
Task allgather_direct(Comm& comm, Blocks all) {
  const int n = comm.size();
  const Data mine = all[comm.rank()];
  Batch batch(comm);
  for (int distance = 1; distance < n; ++distance) {
    const int from = (comm.rank() + n - distance) % n;
    if (all[from].bytes() > 0) batch.receive(from, all[from]);
  }
  for (int distance = 1; distance < n; ++distance) {
    if (mine.bytes() > 0) batch.send((comm.rank() + distance) % n, mine);
  }
  co_await batch;
}

// log2(n) steps for any n. Regular blocks lie in a row, as pieces do; others are packed.
Task allgather_bruck(Comm& comm, Blocks all) {
  const int n = comm.size();
  if (all.regular()) {
    const Data whole = all.range(0, n);
    co_await allgather_doubling(comm, {whole.count, n}, whole);
    co_return;
  }
  Scratch memory(comm, static_cast<std::size_t>(n + 1) * sizeof(MPI_Count));
  auto* const begins = reinterpret_cast<MPI_Count*>(memory.bytes());
  begins[0] = 0;
  for (int i = 0; i < n; ++i)
    begins[i + 1] = begins[i] + static_cast<MPI_Count>(all[i].bytes());
  Scratch packed(comm, static_cast<std::size_t>(begins[n]));
  const Data whole = comm.bytes(packed.bytes(), static_cast<std::size_t>(begins[n]));
  const Pieces pieces{begins[n], n, begins};
  copy(all[comm.rank()], pieces(whole, comm.rank(), comm.rank() + 1));
  co_await allgather_doubling(comm, pieces, whole);
  for (int i = 0; i < n; ++i)
    if (i != comm.rank()) copy(pieces(whole, i, i + 1), all[i]);
}

// Pairs at distance 1, 2, 4, ... exchange all blocks they have: log2(n) steps and partners, two
// more steps where n is not a power of two, and all data copied once more. Blocks stand in a packed
// copy in the order of the places, each followed by the block of the rank that has handed its own
// to it.
Task allgather_recursive_doubling(Comm& comm, Blocks all) {
  const Fold fold(comm.size(), Fold::Who::last);
  const int place = fold.place(comm.rank());
  const int partner = fold.partner(comm.rank());
  const auto bytes_of = [&](int rank) { return rank < 0 ? 0 : all[rank].bytes(); };
  const auto bytes_at = [&](int from, int to) {
    std::size_t sum = 0;
    for (int i = from; i < to; ++i)
      sum += bytes_of(fold.rank(i)) + bytes_of(fold.partner(fold.rank(i)));
    return sum;
  };
  const std::size_t total = bytes_at(0, fold.size);
  const Data mine = all[comm.rank()];
  Scratch packed(comm, total);
  Batch batch(comm);
  if (place < 0) {
    if (mine.bytes() > 0) batch.send(partner, mine);
    if (total > 0) batch.receive(partner, comm.bytes(packed.bytes(), total));
    co_await batch;
  } else {
    std::size_t at =
        bytes_at(0, place); // where the blocks of the places [first, first + bit) begin
    std::size_t have = bytes_at(place, place + 1);
    copy(mine, comm.bytes(packed.bytes() + at, mine.bytes()));
    if (bytes_of(partner) > 0)
      batch.receive(partner, comm.bytes(packed.bytes() + at + mine.bytes(), bytes_of(partner)));
    co_await batch;
    for (int bit = 1; bit < fold.size; bit *= 2) {
      const int other = fold.rank(place ^ bit);
      const int first = (place ^ bit) & -bit;
      const std::size_t in = bytes_at(first, first + bit);
      const bool below = (place & bit) != 0;
      if (have > 0) batch.send(other, comm.bytes(packed.bytes() + at, have));
      if (in > 0)
        batch.receive(other, comm.bytes(packed.bytes() + (below ? at - in : at + have), in));
      co_await batch;
      at -= below ? in : 0;
      have += in;
    }
    if (partner >= 0 && total > 0) batch.send(partner, comm.bytes(packed.bytes(), total));
  }
  std::size_t at = 0;
  const auto put_back = [&](int rank) {
    if (rank < 0) return;
    const Data block = all[rank];
    if (rank != comm.rank()) copy(comm.bytes(packed.bytes() + at, block.bytes()), block);
    at += block.bytes();
  };
  for (int i = 0; i < fold.size; ++i) {
    put_back(fold.rank(i));
    put_back(fold.partner(fold.rank(i)));
  }
  co_await batch;
}

// Blocks go round a ring: n - 1 steps of m, always to the same neighbour, nothing copied. Each is
// asked for while the one before comes.
Task allgather_ring(Comm& comm, Blocks all) {
  const int n = comm.size();
  const int rank = comm.rank();
  const auto block = [&](int behind) { return all[(rank - behind + 2 * n) % n]; };
  std::array<Batch, 3> batches{Batch(comm), Batch(comm), Batch(comm)};
  const auto coming = [&](int step) -> Batch& { return batches[step % 2]; };
  Batch& leaving = batches[2];
  leaving.stay();
  const auto ask = [&](int step) {
    if (step < n && block(step).bytes() > 0) coming(step).receive((rank + n - 1) % n, block(step));
  };
  ask(1);
  for (int step = 1; step < n; ++step) {
    ask(step + 1);
    if (block(step - 1).bytes() > 0) leaving.send((rank + 1) % n, block(step - 1));
    co_await leaving.ended();
    co_await coming(step).ended();
    if (leaving.failed() || coming(step).failed()) break;
  }
  co_await finish(comm, batches);
}

} // namespace macadam::coll
