// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/policy/selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace macadam::net::shm {
namespace {

// Transfers of a size that take the given times through chunks and by the kernel, and longest in
// the other ways; returns how many went through chunks.
int transfers(MethodSelector& selector, std::size_t bytes, int count, double chunks,
              double kernel) {
  const double longest = 2 * std::max(chunks, kernel);
  const std::array seconds = {chunks, longest, kernel};
  int through_chunks = 0;
  for (int i = 0; i < count; ++i) {
    const auto [method, timed] = selector.next(bytes);
    if (timed) selector.record(bytes, method, seconds.at(static_cast<std::size_t>(method)));
    through_chunks += method == CopyMethod::chunks ? 1 : 0;
  }
  return through_chunks;
}

TEST(Selector, TakesTheFastestMethodAndLooksAtTheOthersNowAndThen) {
  MethodSelector chunks_are_better;
  const int through_chunks = transfers(chunks_are_better, 1 << 20, 1000, 30e-6, 80e-6);
  EXPECT_GT(through_chunks, 950);
  EXPECT_LT(through_chunks, 1000);
  MethodSelector kernel_is_better;
  const int copied = 1000 - transfers(kernel_is_better, 1 << 20, 1000, 80e-6, 30e-6);
  EXPECT_GT(copied, 970);
  EXPECT_LT(copied, 1000);
}

// However slow another way is, looking at it costs little in all.
TEST(Selector, LooksTheMoreSeldomTheWorseAnotherMethodIs) {
  MethodSelector selector;
  transfers(selector, 32 << 10, 100, 1e-6, 20e-6);
  constexpr int count = 10'000;
  const int copied = count - transfers(selector, 32 << 10, count, 1e-6, 20e-6);
  EXPECT_GT(copied, 0);
  EXPECT_LT(copied * 20e-6, count * 1e-6 / 50);
}

TEST(Selector, EverySizeLearnsForItself) {
  MethodSelector selector;
  transfers(selector, 16 << 10, 200, 1e-6, 5e-6);
  transfers(selector, 4 << 20, 200, 700e-6, 400e-6);
  EXPECT_GT(transfers(selector, 16 << 10, 100, 1e-6, 5e-6), 95);
  EXPECT_LT(transfers(selector, 4 << 20, 1000, 700e-6, 400e-6), 50);
}

TEST(Selector, AMachineThatChangesIsFollowed) {
  MethodSelector selector;
  transfers(selector, 1 << 20, 200, 30e-6, 80e-6);
  transfers(selector, 1 << 20, 200, 200e-6, 80e-6);
  EXPECT_LT(transfers(selector, 1 << 20, 100, 200e-6, 80e-6), 5);
}

TEST(Selector, OneLostTimeSliceDoesNotCondemnAMethod) {
  MethodSelector selector;
  transfers(selector, 1 << 20, 200, 30e-6, 80e-6);
  selector.record(1 << 20, CopyMethod::chunks, 10e-3);
  EXPECT_GT(transfers(selector, 1 << 20, 100, 30e-6, 80e-6), 95);
}

// Memory that is touched for the first time makes the first transfers slow, whatever their way.
TEST(Selector, AColdStartIsForgotten) {
  MethodSelector selector;
  transfers(selector, 1 << 20, 1, 900e-6, 0);
  EXPECT_GT(transfers(selector, 1 << 20, 100, 30e-6, 80e-6), 60);
  EXPECT_GT(transfers(selector, 1 << 20, 100, 30e-6, 80e-6), 90);
}

// Who may not look takes the best way, and learns nothing from it.
TEST(Selector, TheBestSoFarCountsNothing) {
  MethodSelector selector;
  EXPECT_EQ(selector.best(1 << 20), CopyMethod::chunks);
  transfers(selector, 1 << 20, 100, 80e-6, 30e-6);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(selector.best(1 << 20), CopyMethod::kernel);
  EXPECT_EQ(selector.best(64 << 10), CopyMethod::chunks);
}

// Messages follow each other; the kernel moves them faster and leaves what makes the reader slow.
TEST(CopyCost, WhatAMethodLeavesIsPartOfItsCost) {
  MethodSelector selector;
  CopyCost copy_cost;
  double now = 1;
  int by_the_kernel = 0;
  bool timed = false;
  CopyMethod method = CopyMethod::chunks;
  for (int i = 0; i < 1000; ++i) {
    const double transfer = method == CopyMethod::kernel ? 3e-6 : 5e-6;
    const double reading =
        method == CopyMethod::kernel ? 9e-6 : 4e-6; // done before the next message
    now += transfer;
    if (const auto cost = copy_cost.cost(method, now, transfer); timed && cost)
      selector.record(64 << 10, method, *cost);
    const auto next = selector.next(64 << 10);
    copy_cost.ended(method, next.timed, now);
    now += reading;
    method = next.method;
    timed = next.timed;
    by_the_kernel += method == CopyMethod::kernel ? 1 : 0;
  }
  EXPECT_LT(by_the_kernel, 100);
}

TEST(CopyCost, LongPausesSayNothingAboutAMethod) {
  CopyCost copy_cost;
  copy_cost.ended(CopyMethod::kernel, true, 1);
  const double far_too_long = 2;
  EXPECT_DOUBLE_EQ(copy_cost.cost(CopyMethod::kernel, far_too_long, 4e-6).value(),
                   2 * copy_cost.cost(CopyMethod::kernel, far_too_long, 2e-6).value());
  EXPECT_LT(copy_cost.cost(CopyMethod::kernel, far_too_long, 4e-6).value(), 1e-3);
}

TEST(CopyCost, IsKnownAfterAMessageOfTheSameMethod) {
  CopyCost copy_cost;
  EXPECT_FALSE(copy_cost.cost(CopyMethod::chunks, 1, 1e-6));
  copy_cost.ended(CopyMethod::chunks, false, 1);
  EXPECT_FALSE(
      copy_cost.cost(CopyMethod::chunks, 1.000003, 1e-6)); // nobody looked at the clock then
  copy_cost.ended(CopyMethod::chunks, true, 1);
  EXPECT_FALSE(copy_cost.cost(CopyMethod::kernel, 1.000003, 1e-6));
  EXPECT_NEAR(copy_cost.cost(CopyMethod::chunks, 1.000003, 1e-6).value(), 3e-6, 1e-9);
}

TEST(Selector, AnySizeHasAClass) {
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
TEST(Selector, EachClassLearnsByItself) {
  MethodSelector selector;
  transfers(selector, 64 << 10, 100, 1e-6, 20e-6);
  transfers(selector, 1 << 20, 100, 20e-6, 1e-6);
  EXPECT_EQ(selector.best(64 << 10), CopyMethod::chunks);
  EXPECT_EQ(selector.best(1 << 20), CopyMethod::kernel);
  EXPECT_EQ(selector.best(40 << 10), CopyMethod::chunks); // of the same class as 64 KiB
}

} // namespace
} // namespace macadam::net::shm
