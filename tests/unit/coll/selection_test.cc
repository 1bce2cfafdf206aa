// SPDX-License-Identifier: BSD-3-Clause
// What the choice of an algorithm costs in connections, counted in the network.
#include "coll/selection.h"

#include "coll/level_rules.h"

#include "world.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <numeric>

namespace macadam::test {
namespace {

using coll::Arguments;

const std::vector<int> rank_counts = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 36};
constexpr std::size_t block = 64; // bytes

// Of one collective on `ranks` ranks.
struct Partners {
  std::size_t most = 0;
  std::size_t sum = 0;
};
Partners partners(int ranks, coll::Collective::Run run, bool connected) {
  World world(ranks, calm());
  const auto room = static_cast<std::size_t>(ranks) * block;
  std::vector<std::vector<std::byte>> out(static_cast<std::size_t>(ranks)), in(out.size());
  for (int rank = 0; rank < ranks; ++rank) {
    world.set_connected(rank, connected);
    out[static_cast<std::size_t>(rank)].resize(room);
    in[static_cast<std::size_t>(rank)].resize(room);
  }
  static const datatype::PredefinedOps ops;
  const auto errors = world.run(run, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    Arguments a;
    a.send = {out[at].data(), block, &types()[MPI_BYTE], {}, {}};
    a.receive = {in[at].data(), block, &types()[MPI_BYTE], {}, {}};
    a.op = &ops[MPI_BOR];
    return a;
  });
  for (const std::string& error : errors)
    EXPECT_EQ(error, "");
  Partners found;
  for (int rank = 0; rank < ranks; ++rank) {
    found.most = std::max(found.most, world.network().partners(rank));
    found.sum += world.network().partners(rank);
  }
  return found;
}

struct Named {
  const char* name;
  coll::Collective::Run run;
};
const Named all_to_all[] = {{"barrier", &coll::barrier},
                            {"allreduce", &coll::allreduce},
                            {"allgather", &coll::allgather},
                            {"alltoall", &coll::alltoall}};

TEST(Selection, WhatEverybodyTellsEverybodyTakesFewPartners) {
  for (const int ranks : rank_counts) {
    const auto log2 = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks)) - 1);
    const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
    for (const auto& [name, run] : all_to_all) {
      const Partners found = partners(ranks, run, false);
      if (power) {
        EXPECT_EQ(found.most, log2) << name << " on " << ranks << " ranks";
      } else if (run != &coll::alltoall) {
        EXPECT_LE(found.most, log2 + 1) << name << " on " << ranks << " ranks";
      } else {
        EXPECT_LE(found.most, 2 * (log2 + 1)) << name << " on " << ranks << " ranks";
      }
    }
  }
}

TEST(Selection, WhoIsConnectedTalksToAllAtOnceWhereTheyAreFew) {
  for (const int ranks : {2, 3, 5, 8}) {
    for (const auto& [name, run] : all_to_all) {
      EXPECT_EQ(partners(ranks, run, true).sum, static_cast<std::size_t>(ranks * (ranks - 1)))
          << name << " on " << ranks << " ranks";
    }
  }
}

// Few ranks that call many are worth their connections; more have the partners of faster steps, at
// most, and powers of two those that they had.
TEST(Selection, WhoCallsOftenIsConnectedToAFewMore) {
  for (const int ranks : rank_counts) {
    World world(ranks, calm());
    for (int i = 0; i < 200; ++i) {
      for (const std::string& error : world.run(&coll::barrier, [](int) { return Arguments(); }))
        ASSERT_EQ(error, "") << ranks << " ranks, barrier " << i;
    }
    const auto log2 = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks)) - 1);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::size_t found = world.network().partners(rank);
      if (ranks <= 8) {
        EXPECT_EQ(found, static_cast<std::size_t>(ranks - 1)) << ranks << " ranks";
      } else if (std::has_single_bit(static_cast<unsigned>(ranks))) {
        EXPECT_EQ(found, log2) << ranks << " ranks";
      } else if (ranks % 2 == 0) {
        EXPECT_LE(found, 2 * (log2 + 1)) << ranks << " ranks";
      } else {
        EXPECT_LE(found, 3 * (log2 + 1)) << ranks << " ranks"; // dissemination has twice as many
      }
    }
  }
}

using coll::Algorithm, coll::Kind, coll::RuleTable;

Algorithm chosen(const std::string& levels, Kind kind, int per_machine, std::uint64_t bytes) {
  const RuleTable table(levels);
  return coll::select(table.rules(), kind, 1024, coll::Among::all, per_machine, bytes);
}

TEST(LevelRules, decide_by_bytes_and_ranks_of_a_machine) {
  const std::string text = "allreduce leaders 4K 4, allreduce slices any 8,barrier leaders any 2";
  EXPECT_EQ(chosen(text, Kind::allreduce, 4, 4096), Algorithm::leaders);
  EXPECT_EQ(chosen(text, Kind::allreduce, 3, 4096), Algorithm::recursive_doubling);
  EXPECT_EQ(chosen(text, Kind::allreduce, 7, 4097), Algorithm::recursive_doubling);
  EXPECT_EQ(chosen(text, Kind::allreduce, 8, 4097), Algorithm::slices);
  EXPECT_EQ(chosen(text, Kind::barrier, 2, 0), Algorithm::leaders);
  EXPECT_EQ(chosen(text, Kind::bcast, 64, 1 << 20), Algorithm::scatter_allgather); // not named
  EXPECT_EQ(chosen("none", Kind::barrier, 64, 0), Algorithm::recursive_doubling);
  EXPECT_EQ(chosen("", Kind::barrier, 64, 0), Algorithm::leaders);
}

TEST(LevelRules, leave_all_others_as_they_are) {
  const RuleTable table(
      "barrier leaders any 4, bcast leaders 4K 2, bcast leaders any 4, reduce leaders 256 2, "
      "reduce slices 16K 2, reduce slices 64K 4, reduce slices any 16, allreduce leaders 256 2, "
      "allreduce slices 64K 2, allreduce slices any 4, gather leaders 1K 2, gather leaders 16K 8, "
      "scatter leaders 1K 2, scatter leaders any 4, allgather slices 256 2, allgather slices any "
      "4, alltoall slices 256 2, reduce_scatter slices 16K 2, reduce_scatter slices 256K 4, "
      "reduce_scatter slices any 8");
  EXPECT_EQ(describe(table.rules()), describe(coll::default_rules()));
}

// Where the kernel moves messages, two levels are taken from two ranks of a machine on, unless a
// file says something else.
TEST(LevelRules, are_others_where_the_kernel_moves_messages) {
  const auto over_tcp = [](const std::string& levels, Kind kind, std::uint64_t bytes) {
    return coll::select(RuleTable(levels, engine::MessagesBy::tcp).rules(), kind, 8,
                        coll::Among::all, 2, bytes);
  };
  EXPECT_EQ(over_tcp("", Kind::allreduce, 1 << 20), Algorithm::leaders);
  EXPECT_EQ(over_tcp("", Kind::alltoall, 16 << 10), Algorithm::slices);
  EXPECT_EQ(over_tcp("", Kind::alltoall, (16 << 10) + 1), Algorithm::pairwise);
  EXPECT_EQ(over_tcp("none", Kind::allreduce, 1 << 20), Algorithm::rabenseifner);
  EXPECT_EQ(over_tcp("barrier leaders any 4", Kind::barrier, 0), Algorithm::recursive_doubling);
}

// What saves steps by more messages does not pay there.
TEST(LevelRules, send_few_messages_where_the_kernel_moves_them) {
  using enum engine::MessagesBy;
  const auto often = [](engine::MessagesBy by, Kind kind, int ranks, std::uint64_t bytes) {
    return coll::select(RuleTable("", by).rules(), kind, ranks, coll::Among::frequent, 0, bytes);
  };
  EXPECT_EQ(often(adapter, Kind::allreduce, 4, 4096), Algorithm::pieces);
  EXPECT_EQ(often(adapter, Kind::allgather, 16, 4096), Algorithm::direct);
  for (const engine::MessagesBy by : {tcp, tcp_alone}) {
    EXPECT_EQ(often(by, Kind::allreduce, 4, 4096), Algorithm::recursive_doubling);
    EXPECT_EQ(often(by, Kind::allgather, 16, 4096), Algorithm::recursive_doubling);
    EXPECT_EQ(often(by, Kind::allgather, 8, 4096), Algorithm::direct);
  }
  // Two levels are for those that share memory inside.
  const auto machines = [](engine::MessagesBy by) {
    return coll::select(RuleTable("", by).rules(), Kind::reduce, 64, coll::Among::all, 2, 1 << 20);
  };
  EXPECT_EQ(machines(tcp), Algorithm::leaders);
  EXPECT_EQ(machines(tcp_alone), machines(adapter));
}

TEST(LevelRules, are_taken_by_the_network) {
  using enum engine::MessagesBy;
  for (const engine::MessagesBy by : {adapter, tcp, tcp_alone}) {
    LoopbackOptions options = calm();
    options.limits.messages_by = by;
    World world(2, options);
    EXPECT_EQ(describe(world.resources(0).rules), describe(RuleTable("", by).rules()));
  }
}

TEST(LevelRules, say_what_is_wrong) {
  const auto error = [](const std::string& text) {
    try {
      const RuleTable table(text);
    } catch (const base::Error& found) {
      EXPECT_TRUE(found.text.starts_with("levels: ")) << found.text;
      return found.text.substr(found.text.find("found"));
    }
    return std::string();
  };
  EXPECT_EQ(error("barier leaders any 4"),
            "found 'barier leaders any 4', needed one of barrier, bcast, reduce, "
            "allreduce, gather, scatter, allgather, alltoall, reduce_scatter");
  EXPECT_EQ(error("barrier leaders any 4, bcast slices any 4"),
            "found ' bcast slices any 4', needed leaders for bcast");
  EXPECT_EQ(error("reduce ring any 4"),
            "found 'reduce ring any 4', needed leaders or slices for reduce");
  for (const char* const line :
       {"reduce slices many 4", "reduce slices 4X 4", "reduce slices -1 4"})
    EXPECT_NE(error(line).find("needed a number of bytes"), std::string::npos) << line;
  for (const char* const line :
       {"reduce slices any", "reduce slices any 1", "reduce slices any x", "reduce slices any 4 4"})
    EXPECT_NE(error(line).find("needed a number of ranks of a machine"), std::string::npos) << line;
  EXPECT_NE(error("scan leaders any 4"), "");
}

} // namespace
} // namespace macadam::test
