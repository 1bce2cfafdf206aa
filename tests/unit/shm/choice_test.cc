// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace macadam::net::shm {
namespace {

// Transfers of a size that take the given times through cells and by the kernel, and longest in the
// other ways; returns how many went through cells.
int transfers(WayChoice& choice, std::size_t bytes, int count, double cells, double kernel) {
  const double longest = 2 * std::max(cells, kernel);
  const std::array seconds = {cells, longest, kernel, longest};
  int through_cells = 0;
  for (int i = 0; i < count; ++i) {
    const auto [way, timed] = choice.next(bytes);
    if (timed) choice.record(bytes, way, seconds.at(static_cast<std::size_t>(way)));
    through_cells += way == Way::cells ? 1 : 0;
  }
  return through_cells;
}

TEST(Choice, TakesTheFastestWayAndLooksAtTheOthersNowAndThen) {
  WayChoice cells_are_better;
  const int through_cells = transfers(cells_are_better, 1 << 20, 1000, 30e-6, 80e-6);
  EXPECT_GT(through_cells, 950);
  EXPECT_LT(through_cells, 1000);
  WayChoice kernel_is_better;
  const int copied = 1000 - transfers(kernel_is_better, 1 << 20, 1000, 80e-6, 30e-6);
  EXPECT_GT(copied, 970);
  EXPECT_LT(copied, 1000);
}

// However slow another way is, looking at it costs little in all.
TEST(Choice, LooksTheMoreSeldomTheWorseAnotherWayIs) {
  WayChoice choice;
  transfers(choice, 32 << 10, 100, 1e-6, 20e-6);
  constexpr int count = 10'000;
  const int copied = count - transfers(choice, 32 << 10, count, 1e-6, 20e-6);
  EXPECT_GT(copied, 0);
  EXPECT_LT(copied * 20e-6, count * 1e-6 / 50);
}

TEST(Choice, EverySizeLearnsForItself) {
  WayChoice choice;
  transfers(choice, 16 << 10, 200, 1e-6, 5e-6);
  transfers(choice, 4 << 20, 200, 700e-6, 400e-6);
  EXPECT_GT(transfers(choice, 16 << 10, 100, 1e-6, 5e-6), 95);
  EXPECT_LT(transfers(choice, 4 << 20, 100, 700e-6, 400e-6), 5);
}

TEST(Choice, AMachineThatChangesIsFollowed) {
  WayChoice choice;
  transfers(choice, 1 << 20, 200, 30e-6, 80e-6);
  transfers(choice, 1 << 20, 200, 200e-6, 80e-6);
  EXPECT_LT(transfers(choice, 1 << 20, 100, 200e-6, 80e-6), 5);
}

TEST(Choice, OneLostTimeSliceDoesNotCondemnAWay) {
  WayChoice choice;
  transfers(choice, 1 << 20, 200, 30e-6, 80e-6);
  choice.record(1 << 20, Way::cells, 10e-3);
  EXPECT_GT(transfers(choice, 1 << 20, 100, 30e-6, 80e-6), 95);
}

// Memory that is touched for the first time makes the first transfers slow, whatever their way.
TEST(Choice, AColdStartIsForgotten) {
  WayChoice choice;
  transfers(choice, 1 << 20, 1, 900e-6, 0);
  EXPECT_GT(transfers(choice, 1 << 20, 100, 30e-6, 80e-6), 60);
  EXPECT_GT(transfers(choice, 1 << 20, 100, 30e-6, 80e-6), 90);
}

// Who may not look takes the best way, and learns nothing from it.
TEST(Choice, TheBestSoFarCountsNothing) {
  WayChoice choice;
  EXPECT_EQ(choice.best(1 << 20), Way::cells);
  transfers(choice, 1 << 20, 100, 80e-6, 30e-6);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(choice.best(1 << 20), Way::kernel);
  EXPECT_EQ(choice.best(64 << 10), Way::cells);
}

// Messages follow each other; the kernel moves them faster and leaves what makes the reader slow.
TEST(Pace, WhatAWayLeavesIsPartOfItsCost) {
  WayChoice choice;
  Pace pace;
  double now = 1;
  int by_the_kernel = 0;
  bool timed = false;
  Way way = Way::cells;
  for (int i = 0; i < 1000; ++i) {
    const double transfer = by_kernel(way) ? 3e-6 : 5e-6;
    const double reading = by_kernel(way) ? 9e-6 : 4e-6; // done before the next message
    now += transfer;
    if (const auto cost = pace.cost(way, now, transfer); timed && cost)
      choice.record(64 << 10, way, *cost);
    const auto next = choice.next(64 << 10);
    pace.ended(way, next.timed, now);
    now += reading;
    way = next.way;
    timed = next.timed;
    by_the_kernel += by_kernel(way) ? 1 : 0;
  }
  EXPECT_LT(by_the_kernel, 100);
}

TEST(Pace, LongPausesSayNothingAboutAWay) {
  Pace pace;
  pace.ended(Way::kernel, true, 1);
  const double far_too_long = 2;
  EXPECT_DOUBLE_EQ(pace.cost(Way::kernel, far_too_long, 4e-6).value(),
                   2 * pace.cost(Way::kernel, far_too_long, 2e-6).value());
  EXPECT_LT(pace.cost(Way::kernel, far_too_long, 4e-6).value(), 1e-3);
}

TEST(Pace, IsKnownAfterAMessageOfTheSameWay) {
  Pace pace;
  EXPECT_FALSE(pace.cost(Way::cells, 1, 1e-6));
  pace.ended(Way::cells, false, 1);
  EXPECT_FALSE(pace.cost(Way::cells, 1.000003, 1e-6)); // nobody looked at the clock then
  pace.ended(Way::cells, true, 1);
  EXPECT_FALSE(pace.cost(Way::halves, 1.000003, 1e-6));
  EXPECT_NEAR(pace.cost(Way::cells, 1.000003, 1e-6).value(), 3e-6, 1e-9);
}

TEST(Choice, AnySizeHasAClass) {
  std::size_t before = size_class(0);
  EXPECT_EQ(before, 0u);
  for (std::size_t bytes = 1; bytes != 0; bytes <<= 1) {
    const std::size_t at = size_class(bytes);
    EXPECT_LT(at, size_classes);
    EXPECT_GE(at, before);
    EXPECT_EQ(at, size_class(bytes + 64)) << "with a header, " << bytes; // at most 64 bytes
    before = at;
  }
  EXPECT_EQ(size_class(8 << 10), 0u);
  EXPECT_EQ(size_class(16 << 10), 1u);
  EXPECT_EQ(before, size_classes - 1);
  EXPECT_EQ(size_class(~std::size_t{0}), size_classes - 1);
}

// What is learned of one size says nothing about another class.
TEST(Choice, EachClassLearnsByItself) {
  WayChoice choice;
  transfers(choice, 64 << 10, 100, 1e-6, 20e-6);
  transfers(choice, 1 << 20, 100, 20e-6, 1e-6);
  EXPECT_EQ(choice.best(64 << 10), Way::cells);
  EXPECT_EQ(choice.best(1 << 20), Way::kernel);
  EXPECT_EQ(choice.best(40 << 10), Way::cells); // of the same class as 64 KiB
}

} // namespace
} // namespace macadam::net::shm
