// SPDX-License-Identifier: BSD-3-Clause
// Collectives that move data, and barriers, on two levels.
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/levels.h"
#include "datatype/constructors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

namespace macadam::coll {

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
    // Pairs would take two steps more where they have to be folded.
    if (std::has_single_bit(static_cast<unsigned>(machines.count())))
      co_await barrier_on(across);
    else
      co_await barrier_dissemination(across);
  }
  co_await bcast_on(inside, word, 0);
}

namespace {

// Segments down a binary tree of machines, of which a leader takes in some ahead of the one that it
// passes on. 2m bytes leave a machine, where the root of a binomial tree sends log2(n) m.
class Tree {
 public:
  Tree(Comm& across, int root)
      : across_(across), root_(root),
        place_((across.rank() - root + across.size()) % across.size()), batches_{Batch(across),
                                                                                 Batch(across),
                                                                                 Batch(across),
                                                                                 Batch(across),
                                                                                 Batch(across)} {
    for (std::int64_t i = 0; i < behind; ++i)
      leaving(i).stay(); // for what is coming, or for this machine's ranks
  }

  static constexpr std::int64_t ahead = 3;
  static constexpr std::int64_t behind = 2; // whose sends may be under way
  // Asks the parent for a segment; of no bytes: there is none.
  void ask(std::int64_t number, const Data& segment) {
    if (place_ != 0 && segment.bytes() > 0) coming(number).receive(rank((place_ - 1) / 2), segment);
  }
  void pass_on(std::int64_t number, const Data& segment) {
    for (int child = 2 * place_ + 1; child <= 2 * place_ + 2; ++child)
      if (child < across_.size()) leaving(number).send(rank(child), segment);
  }
  Batch& coming(std::int64_t number) { return batches_[static_cast<std::size_t>(number % ahead)]; }
  Batch& leaving(std::int64_t number) {
    return batches_[static_cast<std::size_t>(ahead + number % behind)];
  }
  std::span<Batch> batches() { return batches_; }

 private:
  [[nodiscard]] int rank(int place) const { return (place + root_) % across_.size(); }

  Comm& across_;
  int root_;
  int place_;
  std::array<Batch, ahead + behind> batches_;
};

// What a bcast is cut in.
struct Cuts {
  const Packed& data;
  std::size_t each;
  [[nodiscard]] std::int64_t count() const {
    return static_cast<std::int64_t>((data.size() + each - 1) / each);
  }
  // Of no bytes beyond the last.
  [[nodiscard]] Data operator[](std::int64_t number) const {
    const std::size_t first = std::min(data.size(), static_cast<std::size_t>(number) * each);
    return data.bytes(first, std::min(each, data.size() - first));
  }
};

// A segment is here, or comes, and goes on.
Task relay(Comm& /*memory*/, Tree& tree, const Cuts& cuts, std::int64_t number) {
  Batch& coming = tree.coming(number);
  Batch& leaving = tree.leaving(number);
  co_await coming;
  tree.ask(number + Tree::ahead, cuts[number + Tree::ahead]);
  co_await leaving;
  tree.pass_on(number, cuts[number]);
}

// `giver` writes to the others of its machine what `tree` brings, if this rank leads: one segment
// while the next one comes. The leader at home reads it first if another one gives.
Task bcast_segments(Comm& inside, Tree* tree, const Cuts& cuts, int giver) {
  const int behind = giver != 0 ? 1 : 0;
  const std::int64_t count = cuts.count();
  for (std::int64_t number = 0; tree != nullptr && number < std::min(Tree::ahead, count); ++number)
    tree->ask(number, cuts[number]);
  for (std::int64_t step = -1; step < count + behind; ++step) {
    const std::int64_t relayed = step + 1 - 2 * behind;
    Task between = tree != nullptr && relayed >= 0 && relayed < count
                       ? relay(inside, *tree, cuts, relayed)
                       : nothing(inside);
    Task within = step >= 0 && step < count ? bcast_on(inside, cuts[step], giver) : nothing(inside);
    co_await both(inside, between, within);
  }
}

} // namespace

// In the root's machine first, so that its leader has the data, too; in the others they are read
// as they come.
Task bcast_leaders(Comm& comm, Data data, int root) {
  if (data.bytes() == 0) co_return;
  Machines& machines = *comm.machines;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  const int home = machines.machine_of(comm, root);
  const bool at_home = machines.own() == home;
  const int giver = at_home ? machines.index_of(comm, root) : 0;
  // A few segments at least, so that both levels work at once.
  const std::size_t longest = comm.shared->segments.bcast;
  constexpr std::size_t least_parts = 4;
  const std::size_t shortest = std::max<std::size_t>(longest / least_parts, 1);
  if (data.bytes() <= shortest) {
    if (at_home) co_await bcast_on(inside, data, giver);
    if (machines.leads()) co_await bcast_on(across, data, home);
    if (!at_home) co_await bcast_on(inside, data, 0);
    co_return;
  }
  Packed packed(comm, data);
  if (comm.rank() == root) packed.pack();
  const Cuts cuts{packed, std::clamp(packed.size() / least_parts, shortest, longest)};
  if (machines.leads()) {
    Tree tree(across, home);
    Task work = bcast_segments(inside, &tree, cuts, giver);
    co_await Ended{work};
    Task end = finish(comm, tree.batches());
    co_await both(comm, work, end);
  } else {
    co_await bcast_segments(inside, nullptr, cuts, giver);
  }
  if (comm.rank() != root) packed.unpack();
}

namespace {

// How gather and scatter go by the ranks of each machine with the root's index, on machines of as
// many ranks, one behind the other.
struct ByLeaders {
  ByLeaders(const Comm& comm, std::size_t block_bytes, int root)
      : machines(*comm.machines), width(machines.slices()), home(machines.machine_of(comm, root)),
        leader(root % width), leads(machines.index() == leader),
        packs(leads && comm.rank() != root),
        packed(comm, packs ? block_bytes * static_cast<std::size_t>(width) : 0),
        packed_blocks{
            packed.bytes(), static_cast<MPI_Count>(block_bytes), &comm.shared->byte, {}, {},
            nullptr} {}

  // The blocks of this machine, on its leader: where the root has them, or packed.
  [[nodiscard]] Blocks row(const Blocks& all) const {
    if (packs || !leads) return packed_blocks;
    return {all[machines.own() * width].address, all.count, all.type, {}, {}, nullptr};
  }
  // The root's: a row for each machine.
  [[nodiscard]] Blocks rows(const Blocks& all) const {
    return {all.address, all.count * width, all.type, {}, {}, nullptr};
  }

  Machines& machines;
  int width;  // ranks of a machine
  int home;   // the root's machine
  int leader; // its index
  bool leads;
  bool packs;
  Scratch packed;
  Blocks packed_blocks;
};

} // namespace

Task gather_leaders(Comm& comm, Data mine, Blocks all, int root) {
  if (mine.bytes() == 0) co_return;
  const ByLeaders by(comm, mine.bytes(), root);
  Comm inside = by.machines.inside(comm);
  co_await prepare(inside);
  const Blocks row = by.row(all);
  if (by.packs) copy(mine, row[by.leader]);
  co_await gather_on(inside, mine, row, by.leader);
  if (!by.leads) co_return;
  Comm across = by.machines.across(comm);
  co_await gather_on(across, row.range(0, by.width), by.rows(all), by.home);
}

// The same way back.
Task scatter_leaders(Comm& comm, Blocks all, Data mine, int root) {
  if (mine.bytes() == 0) co_return;
  const ByLeaders by(comm, mine.bytes(), root);
  Comm inside = by.machines.inside(comm);
  co_await prepare(inside);
  const Blocks row = by.row(all);
  if (by.leads) {
    Comm across = by.machines.across(comm);
    co_await scatter_on(across, by.rows(all), row.range(0, by.width), by.home);
  }
  if (by.packs) copy(row[by.leader], mine);
  co_await scatter_on(inside, row, mine, by.leader);
}

namespace {

// What came from the machine before goes on to the next one, and its next comes.
Task pass_on(Comm& across, Data out, Data in) {
  const int count = across.size();
  Batch batch(across);
  batch.receive((across.rank() + count - 1) % count, in);
  batch.send((across.rank() + 1) % count, out);
  co_await batch;
}

// Blocks go round rings of the ranks with one index; those of one machine after the other are dealt
// out inside of each, to where they belong, while the next ones come.
Task allgather_rings(Comm& inside, Comm& across, Machines& machines, Blocks all) {
  datatype::TypeRef apart; // a block, and how far it is to the next one of a machine
  if (!machines.in_order()) {
    apart = datatype::resized(*datatype::contiguous(all.count, *all.type), 0,
                              machines.rank_at(0, 1) * all.count * all.type->extent());
    apart->commit();
  }
  const int count = machines.count();
  const auto block = [&](int back, int index) {
    return all[machines.rank_at((machines.own() + count - back) % count, index)];
  };
  for (int back = 0; back < count; ++back) {
    Task between = back + 1 < count ? pass_on(across, block(back, machines.index()),
                                              block(back + 1, machines.index()))
                                    : nothing(across);
    const Data first = block(back, 0);
    Task within = allgather_on(
        inside,
        {first.address, apart ? 1 : first.count, apart ? &*apart : first.type, {}, {}, nullptr});
    co_await both(inside, between, within);
  }
}

} // namespace

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
  if (block > comm.shared->segments.allgather) {
    co_await allgather_rings(inside, across, machines, all);
    co_return;
  }
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

namespace {

// An alltoall, of which the blocks from and to some machines are moved at a time: those that are
// `first` to `first + n - 1` machines further.
struct Rows {
  Machines& machines;
  Blocks out;
  Blocks in;
  int width; // ranks of a machine
  MPI_Count block;
  const datatype::Type& byte;
  int each; // machines at a time

  [[nodiscard]] int machines_of(int group) const {
    return std::clamp(machines.count() - group * each, 0, each);
  }
  [[nodiscard]] int to(int distance) const {
    return (machines.own() + distance) % machines.count();
  }
  [[nodiscard]] int from(int distance) const {
    return (machines.own() + machines.count() - distance) % machines.count();
  }
  [[nodiscard]] Blocks blocks(std::byte* memory, int cells) const {
    return {memory, block * cells, &byte, {}, {}, nullptr};
  }
  [[nodiscard]] std::size_t bytes(int groups) const {
    return static_cast<std::size_t>(block) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(each) * static_cast<std::size_t>(groups);
  }
};

// The blocks for a machine go to the rank there with this rank's index, in one message.
Task exchange_rows(Comm& across, const Rows& of, int group, std::byte* received) {
  const int n = of.machines_of(group);
  const int first = group * of.each;
  const bool in_order = of.machines.in_order();
  Scratch packed(across, in_order ? 0 : of.bytes(1));
  Batch batch(across);
  for (int i = 0; i < n; ++i) {
    const Data row = of.blocks(received, of.width)[i];
    if (first + i > 0) batch.receive(of.from(first + i), row);
  }
  for (int i = 0; i < n; ++i) {
    const int machine = of.to(first + i);
    if (first + i == 0) continue;
    if (in_order) {
      batch.send(machine, of.out.range(machine * of.width, of.width));
      continue;
    }
    const Blocks cells = of.blocks(packed.bytes(), 1);
    for (int index = 0; index < of.width; ++index)
      batch.copy(of.out[of.machines.rank_at(machine, index)], cells[i * of.width + index]);
    batch.send(machine, of.blocks(packed.bytes(), of.width)[i]);
  }
  // What stays on this machine.
  for (int index = 0; first == 0 && index < of.width; ++index)
    batch.copy(of.out[of.machines.rank_at(of.machines.own(), index)],
               of.blocks(received, 1)[index]);
  co_await batch;
}

// The blocks of a group for one rank of the machine, in the rows that were received.
datatype::TypeRef column(const Rows& of, int n) {
  const datatype::TypeRef cells = datatype::hvector(n, of.block, of.block * of.width, of.byte);
  datatype::TypeRef type = datatype::resized(*cells, 0, of.block);
  type->commit();
  return type;
}

// Where those of a group from one rank of this machine belong.
datatype::TypeRef places(const Comm& comm, const Rows& of, int group, int n) {
  const MPI_Count each = of.in.count * of.in.type->extent();
  Scratch memory(comm, static_cast<std::size_t>(n) * sizeof(MPI_Count));
  auto* const displacements = reinterpret_cast<MPI_Count*>(memory.bytes());
  for (int i = 0; i < n; ++i)
    displacements[i] = of.machines.rank_at(of.from(group * of.each + i), 0) * each;
  const datatype::TypeRef cells = datatype::hindexed_block(
      of.in.count, {displacements, static_cast<std::size_t>(n)}, *of.in.type);
  datatype::TypeRef type = datatype::resized(*cells, 0, of.machines.rank_at(0, 1) * each);
  type->commit();
  return type;
}

// Each gives the blocks that it has got to whom they are for: straight from where they came to
// where they belong.
Task deal_rows(Comm& inside, const Rows& of, int group, std::byte* received) {
  const int n = of.machines_of(group);
  const datatype::TypeRef leaving = column(of, n);
  const datatype::TypeRef coming = places(inside, of, group, n);
  const Blocks out{received, 1, &*leaving, {}, {}, nullptr};
  const Blocks in{of.in.address, 1, &*coming, {}, {}, nullptr};
  copy(out[of.machines.index()], in[of.machines.index()]);
  co_await alltoall_on(inside, out, in);
}

} // namespace

Task alltoall_slices(Comm& comm, Blocks out, Blocks in) {
  Machines& machines = *comm.machines;
  const std::size_t block = in[0].bytes();
  if (block == 0) co_return;
  Comm inside = machines.inside(comm);
  co_await prepare(inside);
  Comm across = machines.across(comm);
  const int width = inside.size();
  const auto row = block * static_cast<std::size_t>(width);
  const auto each = std::clamp<std::size_t>(comm.shared->segments.alltoall / row, 1,
                                            static_cast<std::size_t>(machines.count()));
  const Rows of{machines,
                out,
                in,
                width,
                static_cast<MPI_Count>(block),
                comm.shared->byte,
                static_cast<int>(each)};
  const int groups = (machines.count() + of.each - 1) / of.each;
  Scratch received(comm, of.bytes(groups > 1 ? 2 : 1));
  const auto buffer = [&](int group) { return received.bytes() + of.bytes(group % 2); };
  for (int step = 0; step <= groups; ++step) {
    Task between = step < groups ? exchange_rows(across, of, step, buffer(step)) : nothing(comm);
    Task within = step > 0 ? deal_rows(inside, of, step - 1, buffer(step - 1)) : nothing(comm);
    co_await both(comm, between, within);
  }
}

} // namespace macadam::coll
