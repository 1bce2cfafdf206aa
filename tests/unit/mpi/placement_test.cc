// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace macadam::mpi {
namespace {

using Dimensions = std::vector<Grid::Dimension>;

std::vector<int> in_order(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int> machines_of(int ranks, int each) {
  std::vector<int> machines;
  for (int rank = 0; rank < ranks; ++rank)
    machines.push_back(rank / each);
  return machines;
}

// Every rank takes one vertex, and there is no more traffic between machines than before.
std::int64_t placed(const Traffic& traffic, const std::vector<int>& machines,
                    const Dimensions& grid = {}) {
  const std::vector<int> rank_of = place(traffic, machines, grid);
  std::vector<int> sorted = rank_of;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, in_order(traffic.vertices()));
  const std::int64_t between = traffic_between(traffic, machines, rank_of);
  EXPECT_LE(between, traffic_between(traffic, machines, in_order(traffic.vertices())));
  return between;
}

TEST(Placement, CutsGridsIntoBlocks) {
  struct Case {
    Dimensions grid;
    int each;
    std::int64_t best; // counted by hand: planes through the grid, and the edges that each cuts
  };
  for (const auto& [grid, each, best] : {
           Case{{{4}, {4}}, 4, 8},              // four squares: 2 lines of 4
           Case{{{8}, {8}}, 16, 16},            // four squares: 2 lines of 8
           Case{{{4}, {4}, {4}}, 8, 48},        // eight cubes: 3 planes of 16
           Case{{{4, true}, {4, true}}, 4, 16}, // on a torus each line is cut twice
           Case{{{6}, {4}}, 6, 10},             // 3 x 2 blocks: one line of 4, one of 6
           Case{{{16}}, 4, 3},
       }) {
    const Traffic traffic = grid_traffic(grid);
    EXPECT_EQ(placed(traffic, machines_of(traffic.vertices(), each), grid), best);
  }
}

TEST(Placement, LeavesWhatIsGood) {
  const Traffic line = grid_traffic({{12}});
  EXPECT_EQ(place(line, machines_of(12, 4)), in_order(12));
  EXPECT_EQ(place(line, machines_of(12, 12)), in_order(12));
}

// Ranks dealt out to machines in turn: a ring comes together again.
TEST(Placement, MachinesNeedNotBeInOrder) {
  const Traffic ring = grid_traffic({{16, true}});
  std::vector<int> machines;
  for (int rank = 0; rank < 16; ++rank)
    machines.push_back(rank % 4);
  EXPECT_EQ(placed(ring, machines), 4);
}

TEST(Placement, NeverMakesRandomGraphsWorse) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int n = 2 + static_cast<int>(random() % 40);
    Traffic traffic(n);
    for (int edge = 0; edge < 2 * n; ++edge) {
      traffic.add(static_cast<int>(random() % static_cast<unsigned>(n)),
                  static_cast<int>(random() % static_cast<unsigned>(n)),
                  static_cast<std::int64_t>(random() % 5));
    }
    std::vector<int> machines;
    for (int rank = 0; rank < n; ++rank)
      machines.push_back(static_cast<int>(random() % 4));
    placed(traffic, machines);
  }
}

// Two groups that talk among themselves, their ranks mixed.
TEST(Placement, FindsGroups) {
  Traffic traffic(8);
  for (int one = 0; one < 8; ++one) {
    for (int other = one + 2; other < 8; other += 2)
      traffic.add(one, other, 10);
  }
  traffic.add(0, 1, 1);
  EXPECT_EQ(placed(traffic, machines_of(8, 4)), 1);
}

} // namespace
} // namespace macadam::mpi
