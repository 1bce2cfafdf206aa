// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/clocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace macadam::tools {
namespace {

constexpr double latency = 2e-6, longest = 20e-6;

// Two or three machines that exchange messages for ten seconds.
class Machines {
 public:
  // What clock `clock` shows at a time of the first.
  [[nodiscard]] double show(std::size_t clock, double time) const {
    return time + ahead[clock] + drift[clock] * time;
  }
  void exchange(std::size_t a, std::size_t b, int messages) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> later(0, longest);
    for (int i = 0; i < messages; ++i) {
      const double time = 10.0 * i / messages;
      crossings.push_back({a, b, show(a, time), show(b, time + latency + later(random))});
      crossings.push_back({b, a, show(b, time), show(a, time + latency + later(random))});
    }
  }
  std::vector<double> ahead, drift;
  std::vector<Crossing> crossings;
};

TEST(Clocks, AreAlignedByMessages) {
  Machines machines{.ahead = {0, 5000, -0.25}, .drift = {0, 20e-6, -50e-6}, .crossings = {}};
  machines.exchange(0, 1, 2000);
  machines.exchange(2, 1, 2000); // none between 0 and 2
  const auto lines = align_clocks(machines.crossings, {0, 0, 0});
  ASSERT_EQ(lines.size(), 3u);
  for (std::size_t clock = 0; clock < 3; ++clock)
    for (const double time : {0., 2.5, 5., 9.9})
      EXPECT_NEAR(lines[clock].time(machines.show(clock, time)), time, longest / 2)
          << clock << " at " << time;
  EXPECT_GE(lines[1].within, 0);
  EXPECT_LT(lines[1].within, longest);
}

TEST(Clocks, SlowMessagesSayLittle) {
  // For all but a tenth of the time the way to the other takes much longer than the way back.
  Machines machines{.ahead = {0, 5}, .drift = {0, 20e-6}, .crossings = {}};
  machines.exchange(0, 1, 2000);
  for (Crossing& crossing : machines.crossings)
    if (crossing.from == 0 && (crossing.sent < 4 || crossing.sent > 5)) crossing.seen += 30e-3;
  const ClockLine line = align_clocks(machines.crossings, {0, 0})[1];
  double worst = 0;
  for (const double time : {0., 2.5, 4.5, 7.5, 9.9})
    worst = std::max(worst, std::abs(line.time(machines.show(1, time)) - time));
  EXPECT_NEAR(line.time(machines.show(1, 4.5)), 4.5, longest);
  EXPECT_LT(worst, line.within);
  EXPECT_LT(line.within, 10e-3);
}

TEST(Clocks, OneMessageEachWayIsEnough) {
  Machines machines{.ahead = {0, -7}, .drift = {0, 0}, .crossings = {}};
  machines.exchange(0, 1, 1);
  EXPECT_NEAR(align_clocks(machines.crossings, {0, 0})[1].time(-7), 0, longest);
}

TEST(Clocks, MessagesOneWayCorrectTheTimeOfDay) {
  Machines machines{.ahead = {0, 3}, .drift = {0, 0}, .crossings = {}};
  machines.exchange(0, 1, 10);
  std::erase_if(machines.crossings, [](const Crossing& crossing) { return crossing.from == 1; });
  // A guess that lets messages arrive before they are sent; and one that does not.
  const auto early = align_clocks(machines.crossings, {0, 3.5})[1];
  EXPECT_NEAR(early.ahead, 3, longest);
  EXPECT_LT(early.within, 0);
  EXPECT_DOUBLE_EQ(align_clocks(machines.crossings, {0, 2.5})[1].ahead, 2.5);
}

TEST(Clocks, WithoutMessagesTheTimeOfDayCounts) {
  EXPECT_DOUBLE_EQ(align_clocks({}, {0, -4})[1].ahead, -4);
  EXPECT_TRUE(align_clocks({}, {}).empty());
}

} // namespace
} // namespace macadam::tools
