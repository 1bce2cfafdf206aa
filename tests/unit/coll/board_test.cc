// SPDX-License-Identifier: BSD-3-Clause
// Collectives in shared memory: how ranks that run ahead, fail, leave or disagree meet on a board.
// What the collectives do is tested with the other algorithms.
#include "coll/board.h"

#include "datatype/constructors.h"
#include "world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace macadam::test {
namespace {

using coll::Arguments;
using coll::Board;
using coll::Collective;

const datatype::Op& sum() {
  static datatype::PredefinedOps all;
  return all[MPI_SUM];
}

coll::Blocks bytes_of(std::vector<std::byte>& data) {
  return {data.data(), static_cast<MPI_Count>(data.size()), &types()[MPI_BYTE], {}, {}, nullptr};
}
coll::Blocks blocks(std::vector<int>& data) {
  return {data.data(), static_cast<MPI_Count>(data.size()), &types()[MPI_INT], {}, {}, nullptr};
}

std::unique_ptr<Operation> make(World& world, int rank, Collective::Run run, const Arguments& a) {
  auto made = std::make_unique<Operation>(world.resources(rank), world.team(rank),
                                          world.boards(rank), run, a);
  return made;
}

// The board is there afterwards.
void meet(World& world) {
  for (const std::string& error : world.run(&coll::barrier, [](int) { return Arguments(); }))
    ASSERT_EQ(error, "");
}

TEST(Board, NoMessageIsSentOnceItIsMade) {
  World world(4, sharing(calm()));
  meet(world);
  const std::uint64_t before = world.network().messages();
  std::vector<std::vector<int>> data(4, std::vector<int>(100000));
  for (int& x : data[2])
    x = 7;
  const auto errors = world.run(&coll::bcast, [&](int rank) {
    Arguments a;
    a.receive = blocks(data[static_cast<std::size_t>(rank)]);
    a.root = 2;
    return a;
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
  EXPECT_EQ(data[0], data[2]);
  EXPECT_EQ(world.network().messages(), before);
}

// Each block but a rank's own is read or written once, and no message is sent.
TEST(Board, SingleCopies) {
  struct Row {
    coll::Kind kind;
    Collective::Run run;
    std::uint64_t reads, writes;
  };
  for (const Row& row : {Row{coll::Kind::gather, &coll::gather, 0, 2},
                         Row{coll::Kind::scatter, &coll::scatter, 2, 0},
                         Row{coll::Kind::alltoall, &coll::alltoall, 6, 0}}) {
    World world(3, sharing(calm()));
    world.force(row.kind, coll::Algorithm::single_copy);
    meet(world);
    const std::uint64_t before = world.network().messages();
    std::vector<std::vector<int>> in(3, std::vector<int>(300)), out = in;
    const auto errors = world.run(row.run, [&](int rank) {
      Arguments a;
      a.send = {in[static_cast<std::size_t>(rank)].data(), 100, &types()[MPI_INT], {}, {}, nullptr};
      a.receive = {
          out[static_cast<std::size_t>(rank)].data(), 100, &types()[MPI_INT], {}, {}, nullptr};
      return a;
    });
    EXPECT_EQ(errors, std::vector<std::string>(3));
    EXPECT_EQ(world.network().reads(), row.reads);
    EXPECT_EQ(world.network().writes(), row.writes);
    EXPECT_EQ(world.network().messages(), before);
  }
}

// As with MPI_BOTTOM: two buffers that differ by their types alone.
TEST(Board, ARootsOwnBlockIsCopiedWhereAddressesAreEqual) {
  World world(2, sharing(calm()));
  world.force(coll::Kind::scatter, coll::Algorithm::single_copy);
  meet(world);
  const std::vector<MPI_Count> one = {1}, behind = {8};
  const datatype::TypeRef third = datatype::hindexed(one, behind, types()[MPI_INT]);
  third->commit();
  std::vector<int> root = {7, 8, 0}, other = {0, 0, 0};
  const auto errors = world.run(&coll::scatter, [&](int rank) {
    void* const address = rank == 0 ? root.data() : other.data();
    Arguments a;
    a.send = {address, 1, &types()[MPI_INT], {}, {}, nullptr};
    a.receive = {address, 1, third.get(), {}, {}, nullptr};
    return a;
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(root[2], 7);
  EXPECT_EQ(other[2], 8);
}

// Ranks that call something else: who shows its blocks fails when the others have copied.
TEST(Board, ARootWithSingleCopiesFailsLast) {
  for (const coll::Kind kind : {coll::Kind::gather, coll::Kind::scatter}) {
    World world(4, sharing(calm()));
    world.force(kind, coll::Algorithm::single_copy);
    meet(world);
    std::vector<std::vector<int>> in(4, std::vector<int>(400)), out = in;
    const auto errors =
        world.run(kind == coll::Kind::gather ? &coll::gather : &coll::scatter, [&](int rank) {
          const MPI_Count count = rank == 1 || rank == 2 ? 90 : 100;
          Arguments a;
          a.send = {
              in[static_cast<std::size_t>(rank)].data(), count, &types()[MPI_INT], {}, {}, nullptr};
          a.receive = {out[static_cast<std::size_t>(rank)].data(),
                       count,
                       &types()[MPI_INT],
                       {},
                       {},
                       nullptr};
          return a;
        });
    EXPECT_NE(errors[0].find("ranks differ"), std::string::npos) << errors[0];
    EXPECT_NE(errors[1].find("ranks differ"), std::string::npos) << errors[1];
    EXPECT_NE(errors[2].find("ranks differ"), std::string::npos) << errors[2];
    EXPECT_EQ(errors[3], "");
    EXPECT_EQ(world.network().reads() + world.network().writes(), 1u);
  }
}

// A root is done when its data are in its panel, and goes on until there is no more room.
TEST(Board, ARootRunsAheadAsFarAsThereIsRoom) {
  World world(2, sharing(calm()));
  meet(world);
  std::vector<int> given = {5};
  std::vector<std::unique_ptr<Operation>> sent;
  Arguments a;
  a.receive = blocks(given);
  for (int i = 0; i < 3 * static_cast<int>(coll::PanelShape().notes); ++i) {
    given[0] = i;
    sent.push_back(make(world, 0, &coll::bcast, a));
    world.sequence(0).start_blocking(*sent.back());
    if (!sent.back()->complete()) break;
  }
  // The barrier took a slot.
  ASSERT_EQ(sent.size(), coll::PanelShape().notes);
  EXPECT_FALSE(sent.back()->complete());
  std::vector<int> taken = {0};
  a.receive = blocks(taken);
  for (int i = 0; i < static_cast<int>(sent.size()); ++i) {
    auto receive = make(world, 1, &coll::bcast, a);
    world.sequence(1).start_blocking(*receive);
    ASSERT_TRUE(world.run_until([&] { return receive->complete(); }));
    ASSERT_EQ(taken[0], i);
  }
  EXPECT_TRUE(world.run_until([&] { return sent.back()->complete(); }));
}

// Every order in which three ranks take steps through a few collectives, to a depth at which all of
// them have met each other: a step is a start or a look.
TEST(Board, EveryOrderOfAFewSteps) {
  constexpr int ranks = 3;
  constexpr std::size_t depth = 8;
  constexpr std::size_t orders = 6561; // ranks to the power of depth
  for (std::size_t order = 0; order < orders; ++order) {
    World world(ranks, sharing(calm()));
    meet(world);
    std::vector<std::vector<int>> in(ranks, std::vector<int>(2000)), out = in;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      std::fill(in[rank].begin(), in[rank].end(), static_cast<int>(rank) + 1);
    std::vector<std::vector<std::unique_ptr<Operation>>> its(ranks);
    const auto step = [&](int rank) {
      auto& mine = its[static_cast<std::size_t>(rank)];
      if ((!mine.empty() && !mine.back()->complete()) || mine.size() == 3)
        return static_cast<void>(world.engine(rank).progress());
      Arguments a;
      a.send = blocks(in[static_cast<std::size_t>(rank)]);
      a.receive = blocks(out[static_cast<std::size_t>(rank)]);
      a.op = &sum();
      a.root = 1;
      // The root gives what the allreduce gave it.
      constexpr std::array<Collective::Run, 3> runs = {&coll::allreduce, &coll::bcast,
                                                       &coll::barrier};
      mine.push_back(make(world, rank, runs[mine.size()], a));
      world.sequence(rank).start_blocking(*mine.back());
    };
    for (std::size_t i = 0, rest = order; i < depth; ++i, rest /= ranks)
      step(static_cast<int>(rest % ranks));
    for (int turn = 0; turn < 200; ++turn)
      step(turn % ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ASSERT_TRUE(its[rank].size() == 3 && its[rank].back()->complete()) << "order " << order;
      ASSERT_EQ(out[rank], std::vector<int>(2000, 6)) << "order " << order;
    }
  }
}

TEST(Board, WhoWaitsForARankThatFailsHearsOfIt) {
  for (const bool is_long : {false, true}) {
    World world(3, sharing(calm()));
    meet(world);
    std::vector<std::vector<int>> data(3, std::vector<int>(is_long ? 200000 : 2, 1));
    std::vector<std::unique_ptr<Operation>> waiting;
    for (const int rank : {0, 1}) {
      Arguments a;
      a.in_place = true;
      a.receive = blocks(data[static_cast<std::size_t>(rank)]);
      a.op = &sum();
      waiting.push_back(make(world, rank, &coll::allreduce, a));
      world.sequence(rank).start_blocking(*waiting.back());
    }
    EXPECT_FALSE(world.run_until([&] { return waiting[0]->complete(); }));
    world.network().kill(2);
    EXPECT_TRUE(world.run_until([&] { return waiting[0]->complete() && waiting[1]->complete(); }));
    for (const auto& operation : waiting)
      EXPECT_EQ(what(operation->error()), "a process of the communicator has failed");
    // Nor can anybody rely on what follows.
    auto next = make(world, 0, &coll::barrier, Arguments());
    world.sequence(0).start_blocking(*next);
    EXPECT_TRUE(next->complete());
    EXPECT_NE(what(next->error()), "");
  }
}

TEST(Board, RanksThatDisagreeAboutTheLengthAreTold) {
  World world(3, sharing(calm()));
  meet(world);
  for (const auto& [given, taken] : {std::pair{100, 99}, {10, 100000}, {100000, 10}}) {
    std::vector<std::vector<std::byte>> data = {
        std::vector<std::byte>(static_cast<std::size_t>(given)),
        std::vector<std::byte>(static_cast<std::size_t>(given)),
        std::vector<std::byte>(static_cast<std::size_t>(taken))};
    const auto errors = world.run(&coll::bcast, [&](int rank) {
      Arguments a;
      a.receive = bytes_of(data[static_cast<std::size_t>(rank)]);
      return a;
    });
    EXPECT_EQ(errors[0], "");
    EXPECT_EQ(errors[1], "");
    EXPECT_EQ(errors[2],
              fmt::format("ranks differ in a collective: rank 0 called MPI_Bcast (root 0, {} "
                          "bytes), and rank 2 called MPI_Bcast (root 0, {} bytes); all must make "
                          "the same calls in the same order with data that match "
                          "(MACADAM_CHECK=1 names their types too)",
                          given, taken));
    meet(world); // and they are in step again
  }
}

// Nobody reads what two roots of a broadcast have written; but notes tell what they follow.
TEST(Board, TwoRootsOfABroadcastAreNamedByTheNextCollective) {
  World world(3, sharing(calm()));
  meet(world);
  std::vector<std::byte> data(8);
  const auto errors = world.run(&coll::bcast, [&](int rank) {
    Arguments a;
    a.receive = bytes_of(data);
    a.root = rank == 1 ? 1 : 0;
    return a;
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  for (const std::string& error : world.run(&coll::barrier, [](int) { return Arguments(); }))
    EXPECT_EQ(error,
              "ranks differ in a collective, 1 before this one (those without data not counted): "
              "rank 0 called MPI_Bcast (root 0, 8 bytes), and rank 1 called MPI_Bcast (root 1, 8 "
              "bytes); all must make the same calls in the same order with data that match "
              "(MACADAM_CHECK=1 names their types too)");
}

// A panel is others' to read until all of them have left.
TEST(Board, MemoryGoesBackWhenAllHaveLeft) {
  World world(3, sharing(calm()));
  const std::size_t before = world.network().allocated();
  meet(world);
  EXPECT_EQ(world.network().allocated(), before + 3);
  world.boards(0).leave(world.resources(0).panels);
  world.boards(1).leave(world.resources(1).panels);
  EXPECT_EQ(world.network().allocated(), before + 3);
  world.boards(2).leave(world.resources(2).panels);
  EXPECT_EQ(world.network().allocated(), before + 2);
  // The others see it when they next make a board.
  meet(world);
  EXPECT_EQ(world.network().allocated(), before + 3);
}

TEST(Board, WithoutMemoryThereAreMessages) {
  LoopbackOptions options = sharing(calm());
  options.no_memory = true;
  World world(3, options);
  meet(world);
  EXPECT_EQ(world.boards(0).find(0), nullptr);
  const std::uint64_t before = world.network().messages();
  meet(world);
  EXPECT_GT(world.network().messages(), before);
}

// As the other tests of nonblocking collectives, but in memory and with long data.
TEST(Board, OutstandingCollectivesHaveBoardsOfTheirOwn) {
  World world(3, sharing(rough(5)));
  constexpr std::size_t many = 20; // from the second of a tag on
  std::vector<std::vector<std::vector<int>>> data(
      3, std::vector<std::vector<int>>(many, std::vector<int>(30000)));
  std::vector<std::unique_ptr<Operation>> all;
  for (int rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < many; ++i) {
      auto& mine = data[static_cast<std::size_t>(rank)][i];
      std::fill(mine.begin(), mine.end(), rank * 100 + static_cast<int>(i));
      Arguments a;
      a.in_place = true;
      a.receive = blocks(mine);
      a.op = &sum();
      all.push_back(make(world, rank, &coll::allreduce, a));
      world.sequence(rank).start_nonblocking(*all.back());
    }
  }
  ASSERT_TRUE(world.run_until(
      [&] { return std::all_of(all.begin(), all.end(), [](auto& o) { return o->complete(); }); }));
  for (auto& its : data) {
    for (std::size_t i = 0; i < many; ++i)
      EXPECT_EQ(its[i], std::vector<int>(30000, 300 + 3 * static_cast<int>(i)));
  }
  EXPECT_NE(world.boards(0).find(1), nullptr);
}

// A collective of its own tag that is started once costs no board, and one that is started again no
// longer than it lives.
TEST(Board, APersistentCollectiveHasOneFromItsSecondStartToItsEnd) {
  World world(3, sharing(calm()));
  constexpr std::int32_t tag = 30;
  std::vector<std::unique_ptr<Operation>> its;
  for (int rank = 0; rank < 3; ++rank) {
    its.push_back(make(world, rank, &coll::barrier, Arguments()));
    its.back()->tag = tag;
  }
  for (const std::size_t panels : {0u, 3u, 3u}) {
    for (auto& operation : its)
      operation->begin();
    ASSERT_TRUE(world.run_until([&] {
      return std::all_of(its.begin(), its.end(), [](auto& o) { return o->complete(); });
    }));
    EXPECT_EQ(world.network().allocated(), panels);
  }
  for (int rank = 0; rank < 3; ++rank)
    world.boards(rank).leave(tag, world.resources(rank).panels);
  meet(world); // each frees what others have left when it makes the next
  EXPECT_EQ(world.network().allocated(), 3u);
  // Nothing is known of the tag any more.
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(world.boards(0).begin(tag), nullptr);
  EXPECT_TRUE(world.boards(0).is_due(tag));
}

} // namespace
} // namespace macadam::test
