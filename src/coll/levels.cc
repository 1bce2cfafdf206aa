// SPDX-License-Identifier: BSD-3-Clause
// Collectives on two levels, each of algorithms that know one: among the ranks of a machine, on
// their board where they have one, and across machines. Short data go through a leader, the first
// rank of each machine; of longer ones each rank of a machine carries a slice, so that all their
// ports are in use and the memory of the machine is gone through in parallel.
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/machines.h"
#include "coll/reduction.h"

namespace macadam::coll {
namespace {

// Before anything else on the team inside a machine.
Task prepare(Comm& inside) {
  if (inside.boards != nullptr && inside.boards->is_due(inside.tag)) co_await make_board(inside);
}

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

// A byte to the leader, and one back when the leaders have met.
Task barrier_leaders(Comm& comm) {
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Scratch seats(comm, static_cast<std::size_t>(machines.leads() ? inside.size() : 1));
  seats.bytes()[0] = {};
  const Data word = comm.bytes(seats.bytes(), 1);
  const Blocks all{seats.bytes(), 1, word.type, {}, {}, nullptr};
  co_await gather_on(inside, word, all, 0);
  if (machines.leads()) {
    Comm across = machines.across(comm);
    co_await barrier_on(across);
  }
  co_await bcast_on(inside, word, 0);
}

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

Task allreduce_slices(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  if (mine.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  const Slices slices(inside, machines, mine.count);
  const Data own = slices.of(result, machines.index());
  co_await reduce_scatter_on(inside, mine, slices.blocks(mine), own, op);
  if (machines.index() < machines.slices()) {
    Comm across = machines.across(comm);
    co_await allreduce_on(across, own, own, op);
  }
  co_await allgather_on(inside, slices.blocks(result));
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

// In the root's machine first, so that its leader has the data, too.
Task bcast_leaders(Comm& comm, Data data, int root) {
  if (data.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  const int home = machines.machine_of(comm, root);
  if (machines.own() == home) co_await bcast_on(inside, data, machines.index_of(comm, root));
  if (machines.leads()) {
    Comm across = machines.across(comm);
    co_await bcast_on(across, data, home);
  }
  if (machines.own() != home) co_await bcast_on(inside, data, 0);
}

Task bcast_slices(Comm& comm, Data data, int root) {
  if (data.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  const int home = machines.machine_of(comm, root);
  Packed packed(comm, data);
  if (comm.rank() == root) packed.pack();
  const Data bytes = packed.bytes(0, packed.size());
  const Slices slices(inside, machines, bytes.count);
  if (machines.own() == home) co_await bcast_on(inside, bytes, machines.index_of(comm, root));
  if (machines.index() < machines.slices()) {
    Comm across = machines.across(comm);
    co_await bcast_on(across, slices.of(bytes, machines.index()), home);
  }
  if (machines.own() != home) co_await allgather_on(inside, slices.blocks(bytes));
  if (comm.rank() != root) packed.unpack();
}

// Each rank gathers the blocks of those with its index, then all of the machine from each other.
Task allgather_slices(Comm& comm, Blocks all) {
  Machines& machines = *comm.machines;
  const Data mine = all[comm.rank()];
  const std::size_t block = mine.bytes();
  if (block == 0) co_return;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  const int count = machines.count();
  const auto row_bytes = static_cast<MPI_Count>(block) * count;
  Scratch memory(comm, block * static_cast<std::size_t>(comm.size()));
  const Blocks rows{memory.bytes(), row_bytes, &comm.shared->byte, {}, {}, nullptr};
  const Blocks own{
      rows[machines.index()].address, static_cast<MPI_Count>(block), rows.type, {}, {}, nullptr};
  copy(mine, own[machines.own()]);
  co_await allgather_on(across, own);
  co_await allgather_on(inside, rows);
  for (int index = 0; index < inside.size(); ++index) {
    const Blocks row{rows[index].address, own.count, rows.type, {}, {}, nullptr};
    for (int machine = 0; machine < count; ++machine) {
      const int rank = machines.rank_at(machine, index);
      if (rank != comm.rank()) copy(row[machine], all[rank]);
    }
  }
}

// Each rank sends what is for a machine to the one there with its index, all blocks in one message;
// then each gives the blocks it has got to whom they are for.
Task alltoall_slices(Comm& comm, Blocks out, Blocks in) {
  Machines& machines = *comm.machines;
  const std::size_t block = in[0].bytes();
  if (block == 0) co_return;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  const int count = machines.count();
  const int width = inside.size();
  const std::size_t all = block * static_cast<std::size_t>(comm.size());
  const auto unit = static_cast<MPI_Count>(block);
  const auto cells = [&](const Scratch& memory) {
    return Blocks{memory.bytes(), unit, &comm.shared->byte, {}, {}, nullptr};
  };
  const auto rows = [&](const Scratch& memory, int length) {
    return Blocks{memory.bytes(), unit * length, &comm.shared->byte, {}, {}, nullptr};
  };
  Scratch one(comm, all);
  Scratch other(comm, all);
  // By machine, and there by index.
  for (int machine = 0; machine < count; ++machine) {
    for (int index = 0; index < width; ++index)
      copy(out[machines.rank_at(machine, index)], cells(one)[machine * width + index]);
  }
  copy(rows(one, width)[machines.own()], rows(other, width)[machines.own()]);
  co_await alltoall_on(across, rows(one, width), rows(other, width));
  // By index, and there by machine.
  for (int index = 0; index < width; ++index) {
    for (int machine = 0; machine < count; ++machine)
      copy(cells(other)[machine * width + index], cells(one)[index * count + machine]);
  }
  copy(rows(one, count)[machines.index()], rows(other, count)[machines.index()]);
  co_await alltoall_on(inside, rows(one, count), rows(other, count));
  for (int index = 0; index < width; ++index) {
    for (int machine = 0; machine < count; ++machine)
      copy(cells(other)[index * count + machine], in[machines.rank_at(machine, index)]);
  }
}

} // namespace macadam::coll
