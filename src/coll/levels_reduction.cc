// SPDX-License-Identifier: BSD-3-Clause
// Collectives that combine, on two levels.
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/levels.h"
#include "coll/reduction.h"

#include <algorithm>

namespace macadam::coll {
namespace {

// `total` units cut in slices, of the ranks with those indexes; ranks beyond have none.
class Slices {
 public:
  Slices(const Comm& inside, const Machines& machines, MPI_Count total)
      : pieces_{total, machines.slices()}, ranks_(inside.size()),
        memory_(inside, 2 * static_cast<std::size_t>(ranks_) * sizeof(MPI_Count)),
        counts_(reinterpret_cast<MPI_Count*>(memory_.bytes())) {
    for (int i = 0; i < ranks_; ++i) {
      counts_[i] = i < pieces_.n ? pieces_.begin(i + 1) - pieces_.begin(i) : 0;
      counts_[ranks_ + i] = i < pieces_.n ? pieces_.begin(i) : total;
    }
  }
  [[nodiscard]] Data of(const Data& vector, int i) const {
    return slice(vector, counts_[ranks_ + i], counts_[i]);
  }
  // The vector as a block for each rank of the machine.
  [[nodiscard]] Blocks blocks(const Data& vector) const {
    return {
        vector.address, 0, vector.type, {counts_, true, ranks_}, {counts_ + ranks_, true, ranks_},
        nullptr};
  }

 private:
  Pieces pieces_;
  int ranks_;
  Scratch memory_;
  MPI_Count* counts_;
};

} // namespace

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
    const Slices slices(inside, of.machines, result.count);
    co_await allgather_on(inside, slices.blocks(result));
  }
  if (combined < of.segments()) {
    const Data mine = of.segment(of.mine, combined);
    const Slices slices(inside, of.machines, mine.count);
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
  constexpr std::size_t segments = 8;
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

// A reduce_scatter, of whose vector the blocks of some machines are taken at a time: those that are
// `first` to `first + n - 1` machines further, from 1 to count(), which is the own one.
struct Rounds {
  Machines& machines;
  Data mine;
  MPI_Count block; // elements
  int width;       // ranks of a machine
  int each;        // machines at a time

  struct Group {
    int first;
    int n;
  };
  [[nodiscard]] int groups() const { return (machines.count() + each - 1) / each; }
  [[nodiscard]] Group group(int number) const {
    return {1 + number * each, std::min(each, machines.count() - number * each)};
  }
  [[nodiscard]] int to(int distance) const {
    return (machines.own() + distance) % machines.count();
  }
  [[nodiscard]] int from(int distance) const {
    return (machines.own() + machines.count() - distance) % machines.count();
  }
  [[nodiscard]] Data part(const Data& of, int number) const {
    return slice(of, number * block, block);
  }
};

// Inside of each machine, each rank combines the blocks of a group that ranks with its index get.
Task combine_group(Comm& inside, const Rounds& of, Rounds::Group group, Data packed, Data partials,
                   const datatype::Op& op) {
  Data all = slice(of.mine, of.to(group.first) * of.width * of.block, of.width * of.block);
  if (group.n > 1) {
    for (int index = 0; index < of.width; ++index)
      for (int i = 0; i < group.n; ++i)
        copy(of.part(of.mine, of.to(group.first + i) * of.width + index),
             of.part(packed, index * group.n + i));
    all = slice(packed, 0, group.n * of.width * of.block);
  }
  const Blocks blocks{all.address, group.n * of.block, all.type, {}, {}, nullptr};
  co_await reduce_scatter_on(inside, all, blocks, slice(partials, 0, blocks.count), op);
}

// They go there; what comes for this rank is combined with what came already.
Task exchange_group(Comm& across, const Rounds& of, Rounds::Group group, Data partials, Data coming,
                    Data sum, const datatype::Op& op) {
  Batch batch(across);
  for (int i = 0; i < group.n; ++i) {
    const int distance = group.first + i;
    if (distance == of.machines.count())
      batch.copy(of.part(partials, i), of.part(coming, i));
    else
      batch.receive(of.from(distance), of.part(coming, i));
  }
  for (int i = 0; i < group.n && group.first + i < of.machines.count(); ++i)
    batch.send(of.to(group.first + i), of.part(partials, i));
  co_await batch;
  for (int i = 0; i < group.n; ++i) {
    const Data part = of.part(coming, i);
    if (group.first + i == 1)
      copy(part, sum);
    else
      op.apply(part.address, sum.address, sum.count, *sum.type);
  }
}

} // namespace

// Of equal blocks, on machines of as many ranks, one behind the other. Combines machines out of
// order.
Task reduce_scatter_slices(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  // Of short blocks those of several machines at a time: a step inside takes a microsecond or two.
  constexpr std::size_t least_bytes = std::size_t{16} << 10;
  const std::size_t row = mine.bytes() / static_cast<std::size_t>(machines.count());
  const auto each = static_cast<int>(
      std::clamp<std::size_t>(least_bytes / row, 1, static_cast<std::size_t>(machines.count())));
  const Rounds of{machines, mine, blocks.count, inside.size(), each};
  const MPI_Count group = each * of.block;
  Scratch memory(comm, *mine.type, 3 * group + of.block);
  Scratch packed(comm, *mine.type, each > 1 ? group * of.width : 0);
  const auto partials = [&](int number) { return slice(memory.data(), number % 2 * group, group); };
  const Data coming = slice(memory.data(), 2 * group, group);
  const Data sum = slice(memory.data(), 3 * group, of.block);
  for (int step = 0; step <= of.groups(); ++step) {
    Task between = step > 0 ? exchange_group(across, of, of.group(step - 1), partials(step - 1),
                                             coming, sum, op)
                            : nothing(comm);
    Task within = step < of.groups()
                      ? combine_group(inside, of, of.group(step), packed.data(), partials(step), op)
                      : nothing(comm);
    co_await both(comm, between, within);
  }
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
  const Slices slices(inside, machines, mine.count);
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
