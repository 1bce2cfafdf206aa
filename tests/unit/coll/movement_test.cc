// SPDX-License-Identifier: BSD-3-Clause
// Collectives that move data: every algorithm, many numbers of ranks, noncontiguous types, uneven
// blocks, in place, against the definition.
#include "datatype/constructors.h"
#include "datatype/cursor.h"
#include "world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace macadam::test {
namespace {

using coll::Algorithm;
using coll::Arguments;
using coll::Blocks;
using coll::Data;
using coll::Kind;
using datatype::Type;
using datatype::TypeRef;

constexpr std::byte untouched{0xa5};

// Byte `i` of what rank `from` has for rank `to`.
std::byte value(int from, int to, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(from * 31 + to * 7) + i * 13) % 251);
}

// A type of 6 bytes, contiguous or with gaps.
struct Element {
  const char* name;
  TypeRef type;
};
std::vector<Element> elements() {
  TypeRef flat = datatype::contiguous(3, types()[MPI_SHORT]);
  // Two pieces of two bytes and two single ones, not in the order of their addresses.
  const std::vector<MPI_Count> lengths = {2, 1, 2, 1};
  const std::vector<MPI_Count> places = {4, 1, 8, 12};
  TypeRef noncontiguous = datatype::hindexed(lengths, places, types()[MPI_BYTE]);
  TypeRef resized = datatype::resized(*noncontiguous, 0, 16);
  for (TypeRef* type : {&flat, &noncontiguous, &resized})
    (*type)->commit();
  return {{"flat", flat}, {"gaps", resized}};
}

// A user's buffer of blocks, one for each rank, with exact room, so that a sanitizer sees any step
// outside; the gaps are watched.
class Buffer {
 public:
  Buffer(const Type& type, std::vector<MPI_Count> counts, std::vector<MPI_Count> displacements)
      : type_(type), counts_(std::move(counts)), displacements_(std::move(displacements)) {
    MPI_Count end = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 0) end = std::max(end, displacements_[i] + counts_[i]);
    }
    if (end > 0) {
      memory_.assign(static_cast<std::size_t>((end - 1) * type.extent() + type.true_ub()),
                     untouched);
    }
  }
  // `blocks` of `count` elements in a row.
  Buffer(const Type& type, int blocks, MPI_Count count)
      : Buffer(type, row(blocks, count), steps(blocks, count)) {
    regular_ = true;
    count_ = count;
  }

  void fill(int block, int from, int to) {
    const std::vector<std::byte> bytes = expected(block, from, to);
    if (!bytes.empty()) cursor(block).unpack(bytes.data(), bytes.size());
  }
  [[nodiscard]] bool holds(int block, int from, int to) {
    const std::vector<std::byte> bytes = expected(block, from, to);
    std::vector<std::byte> found(bytes.size());
    if (!found.empty()) cursor(block).pack(found.data(), found.size());
    return found == bytes;
  }
  // Nothing but the blocks was written: clears them and looks.
  [[nodiscard]] bool holes_untouched() {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const std::vector<std::byte> clear(static_cast<std::size_t>(counts_[i] * type_.size()),
                                         untouched);
      if (!clear.empty()) cursor(static_cast<int>(i)).unpack(clear.data(), clear.size());
    }
    return memory_ == std::vector<std::byte>(memory_.size(), untouched);
  }
  [[nodiscard]] Blocks blocks() {
    if (regular_) return {memory_.data(), count_, &type_, {}, {}, nullptr};
    return {memory_.data(), 0, &type_, {counts_.data(), true}, {displacements_.data(), true},
            nullptr};
  }

 private:
  static std::vector<MPI_Count> row(int blocks, MPI_Count count) {
    return std::vector<MPI_Count>(static_cast<std::size_t>(blocks), count);
  }
  static std::vector<MPI_Count> steps(int blocks, MPI_Count count) {
    std::vector<MPI_Count> at(static_cast<std::size_t>(blocks));
    for (std::size_t i = 0; i < at.size(); ++i)
      at[i] = static_cast<MPI_Count>(i) * count;
    return at;
  }
  datatype::PackCursor cursor(int block) {
    const auto i = static_cast<std::size_t>(block);
    return {type_, memory_.data() + displacements_[i] * type_.extent(), counts_[i]};
  }
  std::vector<std::byte> expected(int block, int from, int to) const {
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(counts_[static_cast<std::size_t>(block)] * type_.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = value(from, to, i);
    return bytes;
  }

  const Type& type_;
  std::vector<MPI_Count> counts_;
  std::vector<MPI_Count> displacements_;
  bool regular_ = false;
  MPI_Count count_ = 0;
  std::vector<std::byte> memory_;
};

// Runs `test(world, send type, receive type, count, in place)` for every algorithm of `kind`,
// number of ranks, mix of types and count, calm and rough.
template <class Test>
void for_everything(Kind kind, Test&& test) {
  const std::vector<Element> all = elements();
  std::uint64_t seed = 1;
  for (const Algorithm algorithm : coll::algorithms_of(kind)) {
    for (const int ranks : every_rank_count()) {
      for (const bool wild : {false, true}) {
        ++seed;
        World world(ranks, options_for(algorithm, wild ? rough(seed) : calm()));
        world.force(kind, algorithm);
        std::vector<MPI_Count> counts = {0, 1, 9, 40, 300};
        const bool on_boards =
            algorithm == Algorithm::shared || algorithm == Algorithm::single_copy;
        if ((on_boards || on_levels(algorithm)) && ranks <= 5) counts.push_back(25000); // in chunks
        for (const MPI_Count count : counts) {
          for (const Element& send : all) {
            for (const Element& receive : all) {
              for (const bool in_place : {false, true}) {
                SCOPED_TRACE(fmt::format("{} {}, {} ranks, count {}, {} to {}{}, seed {}",
                                         name(kind), name(algorithm), ranks, count, send.name,
                                         receive.name, in_place ? ", in place" : "",
                                         wild ? seed : 0));
                test(world, *send.type, *receive.type, count, in_place);
                if (::testing::Test::HasFailure()) return;
              }
            }
          }
        }
        EXPECT_TRUE(world.at_rest());
        EXPECT_EQ(world.network().registered(), 0u);
      }
    }
  }
}

void expect_no_errors(const std::vector<std::string>& errors) {
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
}

std::vector<int> all_ranks(World& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

int any_rank(World& world) {
  return static_cast<int>(world.random() % static_cast<unsigned>(world.size()));
}

// Uneven blocks, some empty, apart from each other and not in the order of the ranks.
struct Uneven {
  Uneven(World& world, MPI_Count most) {
    const auto n = static_cast<std::size_t>(world.size());
    counts.resize(n);
    displacements.resize(n);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), world.random);
    MPI_Count at = 0;
    for (const std::size_t i : order) {
      const auto below = static_cast<std::uint64_t>(most) + 1;
      counts[i] = world.random() % 4 == 0 ? 0 : static_cast<MPI_Count>(world.random() % below);
      displacements[i] = at;
      at += counts[i] + static_cast<MPI_Count>(world.random() % 3);
    }
  }
  [[nodiscard]] MPI_Count count(int rank) const { return counts[static_cast<std::size_t>(rank)]; }
  std::vector<MPI_Count> counts;
  std::vector<MPI_Count> displacements;
};

TEST(Movement, Barrier) {
  for (const Algorithm algorithm : coll::algorithms_of(Kind::barrier)) {
    for (const int ranks : every_rank_count()) {
      World world(ranks, options_for(algorithm, rough(static_cast<std::uint64_t>(ranks))));
      world.force(Kind::barrier, algorithm);
      expect_no_errors(world.run(&coll::barrier, [](int) { return Arguments(); }));
      EXPECT_TRUE(world.at_rest());
    }
  }
}

// Nobody leaves before everybody has come.
TEST(Movement, BarrierHoldsUntilTheLastRankComes) {
  for (const Algorithm algorithm : coll::algorithms_of(Kind::barrier)) {
    for (const int ranks : {2, 5, 8, 10, 12}) {
      World world(ranks, options_for(algorithm, rough(7)));
      world.force(Kind::barrier, algorithm);
      std::vector<std::unique_ptr<Operation>> operations;
      const auto come = [&](int rank) {
        operations.push_back(std::make_unique<Operation>(world.resources(rank), world.team(rank),
                                                         world.boards(rank), world.machines(rank),
                                                         &coll::barrier, Arguments()));
        world.sequence(rank).start_blocking(*operations.back());
      };
      for (int rank = 1; rank < ranks; ++rank)
        come(rank);
      EXPECT_FALSE(world.run_until([&] {
        return std::any_of(operations.begin(), operations.end(),
                           [](auto& o) { return o->complete(); });
      }));
      come(0);
      EXPECT_TRUE(world.run_until([&] {
        return std::all_of(operations.begin(), operations.end(),
                           [](auto& o) { return o->complete(); });
      }));
      EXPECT_TRUE(world.at_rest());
    }
  }
}

// What a rank sends, and leaves to be sent, before any other has come.
TEST(Movement, AlltoallHasABoundedNumberOfMessagesUnderWay) {
  struct Case {
    int ranks;
    std::size_t exchange;
    std::uint64_t messages;
  };
  for (const Case& its :
       {Case{8, 1, 1}, Case{8, 24, 3}, Case{8, 1 << 20, 7}, Case{40, 1 << 20, 32}}) {
    World world(its.ranks, calm());
    world.force(Kind::alltoall, Algorithm::pairwise);
    world.resources(0).segments.exchange = its.exchange;
    std::vector<std::byte> out(static_cast<std::size_t>(its.ranks) * 8), in(out);
    Arguments a;
    a.send = {out.data(), 8, &types()[MPI_BYTE], {}, {}, nullptr};
    a.receive = {in.data(), 8, &types()[MPI_BYTE], {}, {}, nullptr};
    std::vector<std::unique_ptr<Operation>> operations;
    const auto come = [&](int rank) {
      operations.push_back(
          std::make_unique<Operation>(world.resources(rank), world.team(rank), &coll::alltoall, a));
      world.sequence(rank).start_blocking(*operations.back());
    };
    come(0);
    EXPECT_FALSE(world.run_until([&] { return operations[0]->complete(); }));
    EXPECT_EQ(world.network().messages(), its.messages) << its.ranks << ", " << its.exchange;
    for (int rank = 1; rank < its.ranks; ++rank)
      come(rank);
    EXPECT_TRUE(world.run_until(
        [&] { return std::ranges::all_of(operations, [](auto& o) { return o->complete(); }); }));
  }
}

TEST(Movement, Bcast) {
  for_everything(Kind::bcast, [](World& world, const Type& at_root, const Type& elsewhere,
                                 MPI_Count count, bool) {
    const int root = any_rank(world);
    std::vector<std::unique_ptr<Buffer>> data;
    for (int rank : all_ranks(world)) {
      data.push_back(std::make_unique<Buffer>(rank == root ? at_root : elsewhere, 1, count));
    }
    data[static_cast<std::size_t>(root)]->fill(0, root, 0);
    expect_no_errors(world.run(&coll::bcast, [&](int rank) {
      Arguments a;
      a.receive = data[static_cast<std::size_t>(rank)]->blocks();
      a.root = root;
      return a;
    }));
    for (auto& buffer : data) {
      EXPECT_TRUE(buffer->holds(0, root, 0));
      EXPECT_TRUE(buffer->holes_untouched());
    }
  });
}

// A bcast longer than a few segments.
TEST(Movement, LongBcast) {
  const std::vector<Element> all = elements();
  for (const Algorithm algorithm : coll::algorithms_of(Kind::bcast)) {
    for (const Element& element : all) {
      World world(3, options_for(algorithm, rough(11)));
      world.force(Kind::bcast, algorithm);
      std::vector<std::unique_ptr<Buffer>> data;
      for (int i = 0; i < 3; ++i)
        data.push_back(std::make_unique<Buffer>(*element.type, 1, 100000));
      data[2]->fill(0, 2, 0);
      expect_no_errors(world.run(&coll::bcast, [&](int rank) {
        Arguments a;
        a.receive = data[static_cast<std::size_t>(rank)]->blocks();
        a.root = 2;
        return a;
      }));
      for (auto& buffer : data)
        EXPECT_TRUE(buffer->holds(0, 2, 0));
      EXPECT_TRUE(world.at_rest());
    }
  }
}

// The root gives more than the others asked for: all say so, and none waits for another's piece.
TEST(Movement, BcastOfAnotherLengthThanTheRootsIsAnError) {
  World world(4, calm());
  world.force(Kind::bcast, Algorithm::pieces);
  std::vector<std::vector<std::byte>> data(4, std::vector<std::byte>(3000));
  const auto errors = world.run(&coll::bcast, [&](int rank) {
    Arguments a;
    const int count = rank == 0 ? 3000 : 2400;
    a.receive = {data[static_cast<std::size_t>(rank)].data(), count, &types()[MPI_BYTE], {}, {}};
    a.root = 0;
    return a;
  });
  EXPECT_EQ(errors[0], "");
  for (int rank = 1; rank < 4; ++rank)
    EXPECT_NE(errors[static_cast<std::size_t>(rank)].find("sent 1000 bytes"), std::string::npos);
}

// One block from every rank: gather, gatherv, allgather, allgatherv. `everywhere`: on all ranks,
// else at a root.
void gather_test(World& world, coll::Collective::Run run, bool everywhere, const Type& send_type,
                 const Type& receive_type, const Uneven* uneven, MPI_Count count, bool in_place) {
  const int root = any_rank(world);
  std::vector<std::unique_ptr<Buffer>> out;
  std::vector<std::unique_ptr<Buffer>> in;
  for (int rank : all_ranks(world)) {
    const MPI_Count own = uneven != nullptr ? uneven->count(rank) : count;
    const bool receives = everywhere || rank == root;
    out.push_back(std::make_unique<Buffer>(send_type, 1, own));
    if (!receives)
      in.push_back(std::make_unique<Buffer>(receive_type, 0, 0));
    else if (uneven == nullptr)
      in.push_back(std::make_unique<Buffer>(receive_type, world.size(), count));
    else
      in.push_back(std::make_unique<Buffer>(receive_type, uneven->counts, uneven->displacements));
    if (in_place && receives)
      in.back()->fill(rank, rank, 0);
    else
      out.back()->fill(0, rank, 0);
  }
  expect_no_errors(world.run(run, [&](int rank) {
    Arguments a;
    const bool receives = everywhere || rank == root;
    a.in_place = in_place && receives;
    if (!a.in_place) a.send = out[static_cast<std::size_t>(rank)]->blocks();
    if (receives) a.receive = in[static_cast<std::size_t>(rank)]->blocks();
    a.root = root;
    return a;
  }));
  for (int rank : all_ranks(world)) {
    if (!everywhere && rank != root) continue;
    Buffer& buffer = *in[static_cast<std::size_t>(rank)];
    for (int from : all_ranks(world))
      EXPECT_TRUE(buffer.holds(from, from, 0));
    EXPECT_TRUE(buffer.holes_untouched());
  }
}

TEST(Movement, Gather) {
  for_everything(Kind::gather, [](World& world, const Type& send, const Type& receive,
                                  MPI_Count count, bool in_place) {
    gather_test(world, &coll::gather, false, send, receive, nullptr, count, in_place);
  });
}
TEST(Movement, Gatherv) {
  for_everything(Kind::gather, [](World& world, const Type& send, const Type& receive,
                                  MPI_Count count, bool in_place) {
    const Uneven uneven(world, count);
    gather_test(world, &coll::gatherv, false, send, receive, &uneven, 0, in_place);
  });
}
TEST(Movement, Allgather) {
  for_everything(Kind::allgather, [](World& world, const Type& send, const Type& receive,
                                     MPI_Count count, bool in_place) {
    gather_test(world, &coll::allgather, true, send, receive, nullptr, count, in_place);
  });
}
TEST(Movement, Allgatherv) {
  for_everything(Kind::allgather, [](World& world, const Type& send, const Type& receive,
                                     MPI_Count count, bool in_place) {
    const Uneven uneven(world, count);
    gather_test(world, &coll::allgather, true, send, receive, &uneven, 0, in_place);
  });
}

void scatter_test(World& world, coll::Collective::Run run, const Type& send_type,
                  const Type& receive_type, const Uneven* uneven, MPI_Count count, bool in_place) {
  const int root = any_rank(world);
  std::unique_ptr<Buffer> out =
      uneven != nullptr ? std::make_unique<Buffer>(send_type, uneven->counts, uneven->displacements)
                        : std::make_unique<Buffer>(send_type, world.size(), count);
  std::vector<std::unique_ptr<Buffer>> in;
  for (int rank : all_ranks(world)) {
    out->fill(rank, root, rank);
    in.push_back(
        std::make_unique<Buffer>(receive_type, 1, uneven != nullptr ? uneven->count(rank) : count));
  }
  expect_no_errors(world.run(run, [&](int rank) {
    Arguments a;
    a.in_place = in_place && rank == root;
    if (rank == root) a.send = out->blocks();
    if (!a.in_place) a.receive = in[static_cast<std::size_t>(rank)]->blocks();
    a.root = root;
    return a;
  }));
  for (int rank : all_ranks(world)) {
    if (in_place && rank == root) continue;
    EXPECT_TRUE(in[static_cast<std::size_t>(rank)]->holds(0, root, rank));
    EXPECT_TRUE(in[static_cast<std::size_t>(rank)]->holes_untouched());
  }
  for (int rank : all_ranks(world))
    EXPECT_TRUE(out->holds(rank, root, rank));
}

TEST(Movement, Scatter) {
  for_everything(Kind::scatter, [](World& world, const Type& send, const Type& receive,
                                   MPI_Count count, bool in_place) {
    scatter_test(world, &coll::scatter, send, receive, nullptr, count, in_place);
  });
}
TEST(Movement, Scatterv) {
  for_everything(Kind::scatter, [](World& world, const Type& send, const Type& receive,
                                   MPI_Count count, bool in_place) {
    const Uneven uneven(world, count);
    scatter_test(world, &coll::scatterv, send, receive, &uneven, 0, in_place);
  });
}

TEST(Movement, Alltoall) {
  for_everything(Kind::alltoall, [](World& world, const Type& send, const Type& receive,
                                    MPI_Count count, bool in_place) {
    std::vector<std::unique_ptr<Buffer>> out;
    std::vector<std::unique_ptr<Buffer>> in;
    for (int rank : all_ranks(world)) {
      out.push_back(std::make_unique<Buffer>(send, world.size(), count));
      in.push_back(std::make_unique<Buffer>(receive, world.size(), count));
      for (int to : all_ranks(world))
        (in_place ? in : out).back()->fill(to, rank, to);
    }
    expect_no_errors(world.run(&coll::alltoall, [&](int rank) {
      Arguments a;
      a.in_place = in_place;
      if (!in_place) a.send = out[static_cast<std::size_t>(rank)]->blocks();
      a.receive = in[static_cast<std::size_t>(rank)]->blocks();
      return a;
    }));
    for (int rank : all_ranks(world)) {
      Buffer& buffer = *in[static_cast<std::size_t>(rank)];
      for (int from : all_ranks(world))
        EXPECT_TRUE(buffer.holds(from, from, rank));
      EXPECT_TRUE(buffer.holes_untouched());
    }
  });
}

// counts[i][j] elements from rank i to rank j.
TEST(Movement, Alltoallv) {
  for_everything(Kind::alltoall, [](World& world, const Type& send, const Type& receive,
                                    MPI_Count count, bool in_place) {
    const auto n = static_cast<std::size_t>(world.size());
    std::vector<Uneven> sent;
    std::vector<Uneven> received;
    for (std::size_t i = 0; i < n; ++i) {
      sent.emplace_back(world, count);
      received.emplace_back(world, count);
    }
    // What one sends, the other receives; in place, both directions have the same count.
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (in_place && j > i) sent[j].counts[i] = sent[i].counts[j];
        received[j].counts[i] = sent[i].counts[j];
      }
    }
    for (Uneven& uneven : received) {
      MPI_Count at = 0;
      for (std::size_t i = 0; i < n; ++i) {
        uneven.displacements[i] = at;
        at += uneven.counts[i] + 1;
      }
    }
    for (Uneven& uneven : sent) {
      MPI_Count at = 0;
      for (std::size_t i = n; i-- > 0;) {
        uneven.displacements[i] = at;
        at += uneven.counts[i];
      }
    }
    std::vector<std::unique_ptr<Buffer>> out;
    std::vector<std::unique_ptr<Buffer>> in;
    for (int rank : all_ranks(world)) {
      const auto i = static_cast<std::size_t>(rank);
      out.push_back(std::make_unique<Buffer>(send, sent[i].counts, sent[i].displacements));
      in.push_back(
          std::make_unique<Buffer>(receive, received[i].counts, received[i].displacements));
      for (int to : all_ranks(world))
        (in_place ? in : out).back()->fill(to, rank, to);
    }
    expect_no_errors(world.run(&coll::alltoallv, [&](int rank) {
      Arguments a;
      a.in_place = in_place;
      if (!in_place) a.send = out[static_cast<std::size_t>(rank)]->blocks();
      a.receive = in[static_cast<std::size_t>(rank)]->blocks();
      return a;
    }));
    for (int rank : all_ranks(world)) {
      Buffer& buffer = *in[static_cast<std::size_t>(rank)];
      for (int from : all_ranks(world))
        EXPECT_TRUE(buffer.holds(from, from, rank));
      EXPECT_TRUE(buffer.holes_untouched());
    }
  });
}

// A type for each rank, displacements in bytes.
TEST(Movement, Alltoallw) {
  const std::vector<Element> all = elements();
  for (const int ranks : every_rank_count()) {
    World world(ranks, rough(static_cast<std::uint64_t>(ranks)));
    const auto n = static_cast<std::size_t>(ranks);
    const Type& bytes = types()[MPI_BYTE];
    const Type& noncontiguous = *all[1].type;
    const auto gap_room = static_cast<std::size_t>(2 * noncontiguous.extent());
    // Rank i sends 2 noncontiguous elements to even ranks and their 12 bytes to odd ones; all
    // receive 12 bytes from even ranks and 2 elements from odd ones.
    struct Side {
      std::vector<std::byte> memory;
      std::vector<int> counts;
      std::vector<int> displacements;
      std::vector<const Type*> types;
    };
    std::vector<Side> out(n);
    std::vector<Side> in(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (Side* side : {&out[i], &in[i]}) {
        side->memory.assign(n * gap_room, untouched);
        for (std::size_t j = 0; j < n; ++j) {
          const bool is_noncontiguous = (j % 2 == 0) == (side == &out[i]);
          side->counts.push_back(is_noncontiguous ? 2 : 12);
          side->types.push_back(is_noncontiguous ? &noncontiguous : &bytes);
          side->displacements.push_back(static_cast<int>((n - 1 - j) * gap_room));
        }
      }
      for (std::size_t j = 0; j < n; ++j) {
        std::vector<std::byte> data(12);
        for (std::size_t k = 0; k < 12; ++k)
          data[k] = value(static_cast<int>(i), static_cast<int>(j), k);
        datatype::PackCursor(*out[i].types[j], out[i].memory.data() + out[i].displacements[j],
                             out[i].counts[j])
            .unpack(data.data(), 12);
      }
    }
    const auto blocks = [](Side& side) -> Blocks {
      return {side.memory.data(),
              0,
              nullptr,
              {side.counts.data(), false},
              {side.displacements.data(), false},
              side.types.data()};
    };
    expect_no_errors(world.run(&coll::alltoallv, [&](int rank) {
      Arguments a;
      a.send = blocks(out[static_cast<std::size_t>(rank)]);
      a.receive = blocks(in[static_cast<std::size_t>(rank)]);
      return a;
    }));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        std::vector<std::byte> data(12);
        datatype::PackCursor(*in[i].types[j], in[i].memory.data() + in[i].displacements[j],
                             in[i].counts[j])
            .pack(data.data(), 12);
        for (std::size_t k = 0; k < 12; ++k) {
          EXPECT_EQ(data[k], value(static_cast<int>(j), static_cast<int>(i), k));
        }
      }
    }
    EXPECT_TRUE(world.at_rest());
  }
}

} // namespace
} // namespace macadam::test
