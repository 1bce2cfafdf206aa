// SPDX-License-Identifier: BSD-3-Clause
#include "sim/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

using sim::Scheduler;

TEST(Scheduler, events_happen_in_the_order_of_their_time_and_then_of_their_making) {
  Scheduler scheduler;
  std::string order;
  const auto note = [&](sim::Time time, char name) {
    scheduler.at(time, [&order, name] { order += name; });
  };
  note(20, 'c');
  note(10, 'a');
  note(20, 'd');
  note(10, 'b');
  scheduler.run_until(19);
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(scheduler.now(), 19);
  EXPECT_EQ(scheduler.next(), 20);
  note(5, 'x'); // past: now
  EXPECT_TRUE(scheduler.step());
  EXPECT_EQ(order, "abx");
  EXPECT_EQ(scheduler.now(), 19);
  while (scheduler.step()) {
  }
  EXPECT_EQ(order, "abxcd");
  EXPECT_EQ(scheduler.next(), sim::never);
}

std::vector<int> shuffled(std::uint64_t seed) {
  Scheduler scheduler(seed, Scheduler::Ties::shuffled);
  std::vector<int> order;
  for (int i = 0; i < 20; ++i)
    scheduler.at(7, [&order, i] { order.push_back(i); });
  scheduler.at(3, [&order] { order.push_back(100); });
  scheduler.run_until(7);
  return order;
}

TEST(Scheduler, shuffled_ties_follow_the_seed) {
  const auto one = shuffled(1);
  EXPECT_EQ(one.front(), 100); // time still rules
  EXPECT_EQ(one, shuffled(1));
  EXPECT_NE(one, shuffled(2));
  auto sorted = one;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(sorted, one);
  EXPECT_EQ(sorted.size(), 21u);
}

TEST(Scheduler, events_may_make_events) {
  Scheduler scheduler;
  struct Chain {
    Scheduler& scheduler;
    int left;
    void next() {
      if (left-- > 0) scheduler.at(scheduler.now() + 1, [this] { next(); });
    }
  } chain{scheduler, 1000};
  chain.next();
  scheduler.run_until(sim::microsecond);
  EXPECT_EQ(chain.left, -1);
  EXPECT_EQ(scheduler.events(), 1000u);
}

} // namespace
} // namespace macadam::test
