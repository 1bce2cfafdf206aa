// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/choice.h"
#include "net/shm/stores.h"

#include <gtest/gtest.h>

namespace macadam::net::shm {
namespace {

// Transfers of a size whose two paths take the given times; returns how many took the stream.
int transfers(PathChoice& choice, std::size_t bytes, int count, double stream, double cross_copy) {
  int streamed = 0;
  for (int i = 0; i < count; ++i) {
    const auto [path, timed] = choice.next(bytes);
    if (timed) choice.record(bytes, path, path == Path::stream ? stream : cross_copy);
    streamed += path == Path::stream ? 1 : 0;
  }
  return streamed;
}

TEST(Choice, TakesTheFasterPathAndLooksAtTheOtherNowAndThen) {
  PathChoice stream_is_better;
  const int streamed = transfers(stream_is_better, 1 << 20, 1000, 30e-6, 80e-6);
  EXPECT_GT(streamed, 970);
  EXPECT_LT(streamed, 1000);
  PathChoice kernel_is_better;
  const int copied = 1000 - transfers(kernel_is_better, 1 << 20, 1000, 80e-6, 30e-6);
  EXPECT_GT(copied, 970);
  EXPECT_LT(copied, 1000);
}

// However slow the other way is, looking at it costs little in all.
TEST(Choice, LooksTheMoreSeldomTheWorseTheOtherWayIs) {
  PathChoice choice;
  transfers(choice, 32 << 10, 100, 1e-6, 20e-6);
  constexpr int count = 10'000;
  const int copied = count - transfers(choice, 32 << 10, count, 1e-6, 20e-6);
  EXPECT_GT(copied, 0);
  EXPECT_LT(copied * 20e-6, count * 1e-6 / 50);
}

TEST(Choice, EverySizeLearnsForItself) {
  PathChoice choice;
  transfers(choice, 16 << 10, 200, 1e-6, 5e-6);
  transfers(choice, 4 << 20, 200, 700e-6, 400e-6);
  EXPECT_GT(transfers(choice, 16 << 10, 100, 1e-6, 5e-6), 95);
  EXPECT_LT(transfers(choice, 4 << 20, 100, 700e-6, 400e-6), 5);
}

TEST(Choice, AMachineThatChangesIsFollowed) {
  PathChoice choice;
  transfers(choice, 1 << 20, 200, 30e-6, 80e-6);
  transfers(choice, 1 << 20, 200, 200e-6, 80e-6);
  EXPECT_LT(transfers(choice, 1 << 20, 100, 200e-6, 80e-6), 5);
}

TEST(Choice, OneLostTimeSliceDoesNotCondemnAPath) {
  PathChoice choice;
  transfers(choice, 1 << 20, 200, 30e-6, 80e-6);
  choice.record(1 << 20, Path::stream, 10e-3);
  EXPECT_GT(transfers(choice, 1 << 20, 100, 30e-6, 80e-6), 95);
}

// Memory that is touched for the first time makes the first transfers slow, whatever their way.
TEST(Choice, AColdStartIsForgotten) {
  PathChoice choice;
  transfers(choice, 1 << 20, 1, 900e-6, 0);
  EXPECT_GT(transfers(choice, 1 << 20, 100, 30e-6, 80e-6), 90);
}

// Who may not look takes the better way, and learns nothing from it.
TEST(Choice, TheBestSoFarCountsNothing) {
  PathChoice choice;
  EXPECT_EQ(choice.best(1 << 20), Path::stream);
  transfers(choice, 1 << 20, 100, 80e-6, 30e-6);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(choice.best(1 << 20), Path::cross_copy);
  EXPECT_EQ(choice.best(64 << 10), Path::stream);
}

TEST(Choice, AnySizeHasAClass) {
  PathChoice choice;
  for (std::size_t bytes = 1; bytes != 0; bytes <<= 1) {
    const auto [path, timed] = choice.next(bytes);
    choice.record(bytes, path, 1e-6);
  }
}

} // namespace
} // namespace macadam::net::shm
