// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/silence.h"

#include <gtest/gtest.h>

namespace macadam::tools {
namespace {

int beats_until_gone(Silence& silence, bool busy_here) {
  int beats = 1;
  while (!silence.count(busy_here))
    ++beats;
  return beats;
}

TEST(Silence, LastsAsLongAsWasAskedWhereNobodyIsBusy) {
  Silence silence(1.75);
  silence.note_other(false);
  EXPECT_EQ(beats_until_gone(silence, false), 8);
  EXPECT_EQ(silence.allowed_seconds(), 1.75);
}

TEST(Silence, StartsAnewWithEachWord) {
  Silence silence(1.75);
  silence.note_other(false);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(silence.count(false));
    silence.end();
  }
  EXPECT_EQ(beats_until_gone(silence, false), 8);
}

TEST(Silence, MayLastLongerWhereOneIsBusy) {
  for (const bool here : {true, false}) {
    Silence silence(1.75);
    silence.note_other(!here);
    EXPECT_EQ(beats_until_gone(silence, here), 41);
    EXPECT_EQ(silence.allowed_seconds(), 10);
  }
}

TEST(Silence, MayLastLongerBeforeTheOtherSideHasTold) {
  Silence silence(1.75);
  EXPECT_EQ(beats_until_gone(silence, false), 41);
}

TEST(Silence, IsNeverShorterThanWasAsked) {
  Silence silence(30);
  EXPECT_EQ(beats_until_gone(silence, true), 121);
}

TEST(Silence, IsLongBeforeItIsTooLong) {
  Silence silence(1.75);
  for (int beat = 1; beat < 7; ++beat)
    EXPECT_FALSE(silence.count(true));
  EXPECT_FALSE(silence.is_long());
  EXPECT_FALSE(silence.count(true));
  EXPECT_TRUE(silence.is_long());
}

} // namespace
} // namespace macadam::tools
