// SPDX-License-Identifier: BSD-3-Clause
#include "coll/halving.h"

#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"

#include <algorithm>

namespace macadam::coll {
namespace {

using Runs = std::array<Halving::Run, 2>;

void send(Batch& batch, int to, const Pieces& pieces, const Data& vector, const Runs& runs) {
  for (const auto [begin, end] : runs) {
    const Data part = pieces(vector, begin, end);
    if (part.bytes() > 0) batch.send(to, part);
  }
}

void receive(Batch& batch, int from, const Pieces& pieces, const Data& vector, const Runs& runs) {
  for (const auto [begin, end] : runs) {
    const Data part = pieces(vector, begin, end);
    if (part.bytes() > 0) batch.receive(from, part);
  }
}

// Whether the rules have such a collective so, of pieces of that length. On more ranks a tree is
// faster than as many messages at the root.
bool goes_straight(const Comm& comm, Kind kind, const Data& all) {
  constexpr int most_ranks = 16;
  if (comm.size() > most_ranks) return false;
  const auto average = all.bytes() / static_cast<std::size_t>(comm.size());
  return comm.choose(kind, average, false, false, false) == Algorithm::direct;
}

// One segment of some runs after the other.
class Segmented {
 public:
  Segmented(const Pieces& pieces, const Data& vector, const Runs& runs, MPI_Count longest)
      : parts_{pieces(vector, runs[0].begin, runs[0].end),
               pieces(vector, runs[1].begin, runs[1].end)},
        longest_(longest) {}
  // Of no elements: there are no more.
  Data next() {
    Data& rest = parts_[0].count > 0 ? parts_[0] : parts_[1];
    const Data segment = slice(rest, 0, std::min(rest.count, longest_));
    rest = slice(rest, segment.count, rest.count - segment.count);
    return segment;
  }

 private:
  std::array<Data, 2> parts_;
  MPI_Count longest_;
};

// Exchanges a segment each way while the one before is combined.
class Combining {
 public:
  Combining(Comm& comm, const Data& sum)
      : longest(std::clamp<MPI_Count>(
            static_cast<MPI_Count>(comm.shared->segments.combined / sum.type->size()), 1,
            sum.count)),
        spare_(comm, *sum.type, 2 * longest), batches_{Batch(comm), Batch(comm)} {}

  const MPI_Count longest; // elements of a segment

  // Starts the next exchange; false: there is none.
  bool start(int slot, int to, const Data& leaving, int from, const Data& coming) {
    coming_[slot] = coming;
    if (coming.count > 0) batches_[slot].receive(from, spare(slot));
    if (leaving.count > 0) batches_[slot].send(to, leaving);
    return coming.count > 0 || leaving.count > 0;
  }
  Batch& batch(int slot) { return batches_[slot]; }
  std::array<Batch, 2>& batches() { return batches_; }
  // With what is in `mine`, to the same place in `sum`.
  void combine(int slot, const Data& mine, const Data& sum, const datatype::Op& op) {
    const Data& in = coming_[slot];
    if (in.count == 0) return;
    const auto offset = static_cast<std::byte*>(in.address) - static_cast<std::byte*>(mine.address);
    op.combine(spare(slot).address, in.address, static_cast<std::byte*>(sum.address) + offset,
               in.count, *in.type);
  }

 private:
  [[nodiscard]] Data spare(int slot) const {
    return slice(spare_.data(), slot * longest, coming_[slot].count);
  }
  Scratch spare_;
  std::array<Batch, 2> batches_;
  std::array<Data, 2> coming_;
};

} // namespace

Task reduce_scatter_pieces(Comm& comm, Pieces pieces, Data mine, Data sum, const datatype::Op& op) {
  const Halving halving(comm.size(), comm.rank());
  if (sum.bytes() == 0) co_return;
  if (mine.address != sum.address) {
    // The first step reads `mine` and writes what it combines to `sum`, unless there are gaps,
    // which belong to the user.
    const bool dense = is_dense(*sum.type);
    const int combined = dense ? halving.held(0) - halving.held(1) : 0;
    const int kept = dense ? halving.held(1) : halving.held(0);
    for (const auto [begin, end] : halving.runs(combined, kept - combined))
      copy(pieces(mine, begin, end), pieces(sum, begin, end));
    if (!dense) mine = sum;
  }
  Combining work(comm, sum);
  bool failed = false;
  for (int k = 0; k < halving.steps() && !failed; ++k) {
    const int kept = halving.held(k + 1);
    const int others = halving.held(k) - kept;
    const Data& from = k == 0 ? mine : sum;
    Segmented leaving(pieces, from, halving.runs(kept, others), work.longest);
    Segmented coming(pieces, from, halving.runs(0, others), work.longest);
    const auto start = [&](int slot) {
      return work.start(slot, halving.ahead(kept), leaving.next(), halving.behind(kept),
                        coming.next());
    };
    int slot = 0;
    for (bool more = start(slot); more && !failed; slot ^= 1) {
      more = start(slot ^ 1);
      co_await work.batch(slot).ended();
      failed = work.batch(slot).failed();
      if (!failed) work.combine(slot, from, sum, op);
    }
  }
  co_await finish(comm, work.batches());
}

Task allgather_pieces(Comm& comm, Pieces pieces, Data all) {
  if (goes_straight(comm, Kind::allgather, all)) {
    const Slices slices(comm, pieces);
    co_await allgather_direct(comm, slices.blocks(all));
  } else {
    co_await allgather_doubling(comm, pieces, all);
  }
}

Task allgather_doubling(Comm& comm, Pieces pieces, Data all) {
  const Halving halving(comm.size(), comm.rank());
  Batch batch(comm);
  for (int k = halving.steps() - 1; k >= 0; --k) {
    const int had = halving.held(k + 1);
    const int others = halving.held(k) - had;
    receive(batch, halving.ahead(had), pieces, all, halving.runs(had, others));
    send(batch, halving.behind(had), pieces, all, halving.runs(0, others));
    co_await batch;
  }
}

Task gather_pieces(Comm& comm, Pieces pieces, Data all, int root) {
  const int n = comm.size();
  if (goes_straight(comm, Kind::gather, all)) {
    const Slices slices(comm, pieces);
    // The root is here, so nobody has to leave before it has come.
    co_await gather_direct(comm, slices.of(all, comm.rank()), slices.blocks(all), root, true);
    co_return;
  }
  const Halving halving(n, comm.rank());
  const int place = halving.place(root);
  Batch batch(comm);
  batch.stay(); // for the root, which is here
  int bit = 1;  // of a binomial tree, whose ranks below have the pieces behind ours
  for (; bit < n && (place & bit) == 0; bit *= 2)
    if (place + bit < n)
      receive(batch, halving.ahead(bit), pieces, all,
              halving.runs(bit, std::min(bit, n - place - bit)));
  co_await batch;
  if (place != 0)
    send(batch, halving.behind(bit), pieces, all, halving.runs(0, std::min(bit, n - place)));
  co_await batch;
}

Task scatter_pieces(Comm& comm, Pieces pieces, Data all, int root) {
  const int n = comm.size();
  if (goes_straight(comm, Kind::scatter, all)) {
    const Slices slices(comm, pieces);
    co_await scatter_direct(comm, slices.blocks(all), slices.of(all, comm.rank()), root);
    co_return;
  }
  const Halving halving(n, comm.rank());
  const int place = halving.place(root);
  Batch batch(comm);
  int bit = 1;
  while (bit < n && (place & bit) == 0)
    bit *= 2;
  if (place != 0)
    receive(batch, halving.behind(bit), pieces, all, halving.runs(0, std::min(bit, n - place)));
  co_await batch;
  for (bit /= 2; bit > 0; bit /= 2)
    if (place + bit < n)
      send(batch, halving.ahead(bit), pieces, all,
           halving.runs(bit, std::min(bit, n - place - bit)));
  co_await batch;
}

} // namespace macadam::coll
