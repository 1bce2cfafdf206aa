// SPDX-License-Identifier: BSD-3-Clause
// Collectives that combine, on two levels.
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/levels.h"
#include "coll/reduction.h"

#include <algorithm>

namespace macadam::coll {
Task allreduce_leaders(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  co_await reduce_on(inside, mine, result, op, 0);
  if (machines.leads()) {
    Comm across = machines.across(comm);
    co_await allreduce_on(across, result, result, op);
  }
  co_await bcast_on(inside, result, 0);
}

namespace {

// An allreduce by slices, of whose vectors one segment after the other is taken.
struct Reduction {
  Machines& machines;
  Data mine;
  Data result;
  const datatype::Op& op;
  MPI_Count each; // elements of a segment

  [[nodiscard]] int segments() const { return static_cast<int>((mine.count + each - 1) / each); }
  [[nodiscard]] Data segment(const Data& of, int number) const {
    const MPI_Count first = number * each;
    return slice(of, first, std::min(each, of.count - first));
  }
  // What this rank carries of a segment.
  [[nodiscard]] Data own(int number) const {
    const Data all = segment(result, number);
    const Pieces pieces{all.count, machines.slices()};
    const int index = machines.index();
    return index < pieces.n ? pieces(all, index, index + 1) : slice(all, all.count, 0);
  }
};

// Inside a machine: a segment that has come back is dealt out, another one is combined.
Task share_and_combine(Comm& inside, const Reduction& of, int shared, int combined) {
  if (shared >= 0) {
    const Data result = of.segment(of.result, shared);
    const Slices slices(inside, {result.count, of.machines.slices()});
    co_await allgather_on(inside, slices.blocks(result));
  }
  if (combined < of.segments()) {
    const Data mine = of.segment(of.mine, combined);
    const Slices slices(inside, {mine.count, of.machines.slices()});
    co_await reduce_scatter_on(inside, mine, slices.blocks(mine), of.own(combined), of.op);
  }
}

} // namespace

Task allreduce_slices(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  // The longer a segment, the fewer steps across; but the first and the last one overlap nothing.
  constexpr std::size_t segments = 4;
  const std::size_t each =
      std::max(mine.bytes() / segments,
               comm.shared->segments.slice * static_cast<std::size_t>(machines.slices()));
  const auto size = static_cast<std::size_t>(std::max<MPI_Count>(mine.type->size(), 1));
  const Reduction of{machines, mine, result, op,
                     std::max<MPI_Count>(static_cast<MPI_Count>(each / size), 1)};
  for (int step = 0; step < of.segments() + 2; ++step) {
    const int carried = step - 1;
    const bool carries =
        machines.index() < machines.slices() && carried >= 0 && carried < of.segments();
    Data own;
    if (carries) own = of.own(carried);
    Task between = carries ? allreduce_on(across, own, own, op) : nothing(comm);
    Task within = share_and_combine(inside, of, step - 2, step);
    co_await both(comm, between, within);
  }
}

namespace {

// The vector of a reduce_scatter: a row of blocks for each machine.
struct VectorRows {
  Data mine;
  MPI_Count block; // elements
  int width;       // ranks of a machine

  [[nodiscard]] Data part(const Data& of, int number) const {
    return slice(of, number * block, block);
  }
  [[nodiscard]] Data row(int machine) const {
    return slice(mine, machine * width * block, width * block);
  }
};

// What this rank has combined for the machine `distance` further goes there; `coming` from that
// before is combined with what came already.
Task exchange_partials(Comm& across, int distance, Data partial, Data coming, Data sum,
                       const datatype::Op& op) {
  const int count = across.size();
  Batch batch(across);
  batch.receive((across.rank() + count - distance) % count, coming);
  batch.send((across.rank() + distance) % count, partial);
  co_await batch;
  if (distance == 1)
    copy(coming, sum);
  else
    op.apply(coming.address, sum.address, sum.count, *sum.type);
}

// In one step inside, in the order of those who get them: the blocks for ranks with this rank's
// index, which then take one more step.
Task reduce_scatter_short(Comm& inside, Comm& across, const VectorRows& of, Data result,
                          const datatype::Op& op) {
  const MPI_Count column = of.block * across.size(); // elements for ranks with one index
  Scratch packed(inside, *of.mine.type, of.mine.count);
  Scratch partials(inside, *of.mine.type, column);
  for (int index = 0; index < of.width; ++index)
    for (int machine = 0; machine < across.size(); ++machine)
      copy(of.part(of.mine, machine * of.width + index),
           of.part(packed.data(), index * across.size() + machine));
  const Blocks columns{packed.data().address, column, of.mine.type, {}, {}, nullptr};
  co_await reduce_scatter_on(inside, packed.data(), columns, partials.data(), op);
  const Blocks cells{partials.data().address, of.block, of.mine.type, {}, {}, nullptr};
  co_await reduce_scatter_on(across, partials.data(), cells, result, op);
}

} // namespace

// The blocks of one machine after the other are combined inside of each, while those of the machine
// before travel there; the own one's last. For MPI_Reduce_scatter_block, on machines of as many
// ranks, one behind the other. Combines machines out of order.
Task reduce_scatter_slices(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  // Of less, a message to each machine and a step inside for it take longer than the copies.
  constexpr MPI_Count least_row = 4 << 10;
  const VectorRows of{mine, blocks.count, inside.size()};
  if (static_cast<MPI_Count>(mine.bytes()) < machines.count() * least_row) {
    co_await reduce_scatter_short(inside, across, of, result, op);
    co_return;
  }
  Scratch memory(comm, *mine.type, 4 * of.block);
  const auto partial = [&](int distance) { return of.part(memory.data(), distance % 2); };
  const Data coming = of.part(memory.data(), 2), sum = of.part(memory.data(), 3);
  const int count = machines.count();
  for (int distance = 1; distance <= count; ++distance) {
    Task between = distance > 1 ? exchange_partials(across, distance - 1, partial(distance - 1),
                                                    coming, sum, op)
                                : nothing(comm);
    const Data row = of.row((machines.own() + distance) % count);
    const Blocks its{row.address, of.block, row.type, {}, {}, nullptr};
    Task within = reduce_scatter_on(inside, row, its, partial(distance), op);
    co_await both(comm, between, within);
  }
  op.apply(partial(count).address, sum.address, of.block, *sum.type);
  copy(sum, result);
}

// To the leaders, from them to the leader of the root's machine, and to the root.
Task reduce_leaders(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  const bool is_root = comm.rank() == root;
  const int home = machines.machine_of(comm, root);
  Scratch partial(comm, *mine.type, machines.leads() && !is_root ? mine.count : 0);
  const Data sum = is_root ? result : Data{partial.data().address, mine.count, mine.type};
  const Data none{nullptr, mine.count, mine.type};
  co_await reduce_on(inside, mine, machines.leads() ? sum : none, op, 0);
  if (machines.leads()) {
    Comm across = machines.across(comm);
    co_await reduce_on(across, sum, machines.own() == home ? sum : none, op, home);
  }
  if (machines.own() != home) co_return;
  const int at = machines.index_of(comm, root);
  Batch batch(inside);
  if (at != 0 && machines.leads()) batch.send(at, sum);
  if (at != 0 && is_root) batch.receive(0, result);
  co_await batch;
}

Task reduce_slices(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  const bool is_root = comm.rank() == root;
  const int home = machines.machine_of(comm, root);
  const Slices slices(inside, {mine.count, machines.slices()});
  const MPI_Count count = slices.of(mine, machines.index()).count;
  Scratch partial(comm, *mine.type, is_root ? 0 : count);
  const Data own = is_root ? slices.of(result, machines.index())
                           : Data{partial.data().address, count, mine.type};
  co_await reduce_scatter_on(inside, mine, slices.blocks(mine), own, op);
  if (machines.index() < machines.slices()) {
    Comm across = machines.across(comm);
    const Data none{nullptr, own.count, own.type};
    co_await reduce_on(across, own, machines.own() == home ? own : none, op, home);
  }
  if (machines.own() != home) co_return;
  Batch batch(inside);
  if (!is_root && own.bytes() > 0) batch.send(machines.index_of(comm, root), own);
  for (int i = 0; is_root && i < machines.slices(); ++i) {
    const Data part = slices.of(result, i);
    if (i != machines.index() && part.bytes() > 0) batch.receive(i, part);
  }
  co_await batch;
}

} // namespace macadam::coll
