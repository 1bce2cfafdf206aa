// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team.h"

#include <gtest/gtest.h>

#include <random>

namespace macadam::engine {
namespace {

// Every question about a map, and about places in it, against the plain list it stands for.
void expect_same(const RankMap& map, const std::vector<Rank>& list) {
  ASSERT_EQ(map.size(), static_cast<int>(list.size()));
  for (int i = 0; i < map.size(); ++i) {
    EXPECT_EQ(map[i], list[static_cast<std::size_t>(i)]);
  }
  const Places places(map);
  for (Rank rank = 0; rank < 200; ++rank) {
    const auto found = std::find(list.begin(), list.end(), rank);
    const int place = found == list.end() ? -1 : static_cast<int>(found - list.begin());
    EXPECT_EQ(map.find(rank), place);
    EXPECT_EQ(places(rank), place);
  }
}

TEST(RankMap, RegularListsTakeNoMemory) {
  const std::vector<std::vector<Rank>> regular = {{},           {7},      {0, 1, 2, 3}, {5, 8, 11},
                                                  {9, 6, 3, 0}, {100, 0}, {3, 4}};
  for (const auto& list : regular) {
    const RankMap map(list);
    EXPECT_EQ(map.memory_bytes(), 0u);
    expect_same(map, list);
  }
}

TEST(RankMap, IrregularListsAreKept) {
  for (const auto& list : {std::vector<Rank>{0, 1, 3}, {4, 2, 1, 0}, {1, 3, 5, 6}}) {
    const RankMap map(list);
    EXPECT_EQ(map.memory_bytes(), list.size() * sizeof(Rank));
    expect_same(map, list);
  }
}

TEST(RankMap, AnySubset) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Rank> list(static_cast<std::size_t>(random() % 100));
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = static_cast<Rank>(i);
    std::shuffle(list.begin(), list.end(), random);
    list.resize(list.size() / 2);
    expect_same(RankMap(list), list);
  }
}

} // namespace
} // namespace macadam::engine
