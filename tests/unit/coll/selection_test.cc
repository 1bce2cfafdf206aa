// SPDX-License-Identifier: BSD-3-Clause
// What the choice of an algorithm costs in connections, counted in the network.
#include "coll/selection.h"

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

} // namespace
} // namespace macadam::test
