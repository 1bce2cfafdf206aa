// SPDX-License-Identifier: BSD-3-Clause
// When waits stop to yield, since other programs take the core for whole slices.
#include "net/shm/wait.h"

#include "fake_system.h"

#include <gtest/gtest.h>

namespace macadam::net::shm::test {
namespace {

constexpr double ms = 1e-3, us = 1e-6;

class Yields : public testing::Test {
 protected:
  // So many yields of this length one behind the other, measured or not.
  void yield(YieldCost& cost, int count, double each) {
    for (int i = 0; i < count; ++i, time += each) {
      if (!cost.is_due()) continue;
      ++measured;
      if (cost.add(time, time + each)) cost.avoid(time + each);
    }
  }
  [[nodiscard]] bool too_high(const YieldCost& cost) const {
    return cost.is_too_high([this] { return time; });
  }

  double time = 1;
  int measured = 0;
};

// Waits that yield before they sleep, of a process that shares its core.
unsigned yields_before_sleep(bool in_transfer) {
  class Machine final : public FakeSystem {
   public:
    void yield() noexcept override { time += us; }
  } machine;
  SegmentHeader own;
  Waiter waiter(machine, own, {1, 2}, -1);
  unsigned fruitless = 0;
  while (!waiter.idle(++fruitless, 1000, in_transfer) && fruitless < 10'000)
    continue;
  return static_cast<unsigned>(waiter.counts().yields);
}

TEST_F(Yields, AreMoreBeforeASleepInATransfer) {
  const unsigned otherwise = yields_before_sleep(false);
  EXPECT_GT(otherwise, 0u);
  EXPECT_LT(otherwise, 1000u);
  EXPECT_GE(yields_before_sleep(true), otherwise + 50);
  EXPECT_LT(yields_before_sleep(true), 1000u);
}

TEST_F(Yields, ThatAreShortGoOnAndFewAreMeasured) {
  YieldCost cost;
  yield(cost, 100'000, 2 * us);
  EXPECT_FALSE(too_high(cost));
  EXPECT_LE(measured, 100'000 / 4);
  EXPECT_GT(measured, 0);
}

TEST_F(Yields, ThatTakeSlicesStopForAWhile) {
  YieldCost cost;
  yield(cost, 20, 3 * ms);
  ASSERT_TRUE(too_high(cost));
  time += 1;
  EXPECT_FALSE(too_high(cost));
}

TEST_F(Yields, AreMeasuredCloselyOnceASliceWasSeen) {
  YieldCost cost;
  while (measured == 0)
    yield(cost, 1, 3 * ms);
  measured = 0;
  yield(cost, 10, 2 * us);
  EXPECT_EQ(measured, 10);
}

// As beside a program of the lowest priority.
TEST_F(Yields, ThatTakeASliceNowAndThenButOftenStop) {
  YieldCost cost;
  bool stopped = false;
  for (int i = 0; i < 40 && !stopped; ++i) {
    yield(cost, 96, 1 * us);
    yield(cost, 1, 3 * ms);
    stopped = too_high(cost);
  }
  EXPECT_TRUE(stopped);
}

TEST_F(Yields, WithASliceNowAndThenGoOn) {
  YieldCost cost;
  for (int i = 0; i < 100; ++i) {
    yield(cost, 8, 3 * us);
    yield(cost, 1, 3 * ms);
    time += 100 * ms;
    EXPECT_FALSE(too_high(cost));
  }
}

// Seconds before a wait in vain sleeps, of a process that has a core.
double awake(bool crowded, double time_before) {
  class Machine final : public FakeSystem {
   public:
    bool crowded = false;
    int looks = 0;
    [[nodiscard]] double now() noexcept override { return time += 0.1 * us; }
    void yield() noexcept override { time += 0.5 * us; }
    [[nodiscard]] unsigned running_threads() noexcept override {
      ++looks;
      return crowded ? cores() + 1 : cores();
    }
  } machine;
  SegmentHeader own;
  Waiter waiter(machine, own, {}, 20);
  // A wait that ends early does not ask.
  for (unsigned fruitless = 1; machine.time < 1 + time_before; ++fruitless)
    EXPECT_FALSE(waiter.idle(fruitless, 1000));
  EXPECT_EQ(machine.looks, 0);
  machine.crowded = crowded;
  const double began = machine.time;
  for (unsigned fruitless = 1; !waiter.idle(fruitless, 1000); ++fruitless)
    continue;
  EXPECT_GT(machine.looks, 0);
  EXPECT_LE(machine.looks, 3);
  return machine.time - began;
}

TEST(LongWait, SleepsSoonerWhereOthersWantTheCore) {
  EXPECT_GT(awake(false, 40 * us), 500 * us);
  EXPECT_LT(awake(true, 40 * us), 200 * us);
}

// A machine whose core others compute on: each yield takes a slice.
class CrowdedMachine final : public FakeSystem {
 public:
  int sleeps = 0;
  unsigned running = 0, all_cores = 1;
  unsigned more = 0; // that run at every second look
  unsigned looks = 0;

  [[nodiscard]] double now() noexcept override { return time += 0.1 * us; }
  void yield() noexcept override { time += 3 * ms; }
  void sleep(std::atomic<std::uint32_t>&, std::uint32_t, unsigned) noexcept override { ++sleeps; }
  [[nodiscard]] unsigned running_threads() noexcept override {
    return running + (looks++ % 2 == 0 ? more : 0);
  }
  [[nodiscard]] unsigned cores() noexcept override { return all_cores; }
};

class CrowdedWait : public testing::Test {
 protected:
  // Yields of ten waits, once there were some.
  std::uint64_t yields(SharedCores cores, unsigned running) {
    machine.running = running;
    Waiter waiter(machine, own, cores, cores.cores != 0 ? 0 : 20);
    const auto wait = [&] {
      const int slept = machine.sleeps;
      for (unsigned fruitless = 1; machine.sleeps == slept; ++fruitless)
        waiter.idle(fruitless, 0);
    };
    for (int i = 0; i < 100 && waiter.counts().yields < 50; ++i)
      wait();
    const std::uint64_t before = waiter.counts().yields;
    began = machine.time;
    for (int i = 0; i < 10; ++i)
      wait();
    return waiter.counts().yields - before;
  }

  CrowdedMachine machine;
  SegmentHeader own;
  double began = 0; // the ten waits
};

TEST_F(CrowdedWait, SleepsInsteadOfYielding) {
  EXPECT_EQ(yields({}, 2), 0u);
  EXPECT_LT(machine.time - began, 5 * ms);
}

TEST_F(CrowdedWait, SleepsInsteadOfYieldingToOtherProgramsWhereCoresAreShared) {
  EXPECT_EQ(yields({1, 2}, 3), 0u);
  EXPECT_LT(machine.time - began, 5 * ms);
}

TEST_F(CrowdedWait, YieldsToProcessesOfTheJobThatCompute) {
  EXPECT_GT(yields({1, 2}, 2), 0u);
}

TEST_F(CrowdedWait, YieldsToThemAlsoIfOthersRunForAMoment) {
  machine.more = 1;
  EXPECT_GT(yields({1, 2}, 2), 0u);
}

TEST_F(CrowdedWait, ForgetsThatOthersRanASecondAgo) {
  machine.running = 3;
  Waiter waiter(machine, own, {1, 2}, 0);
  for (int i = 0; i < 5; ++i) {
    unsigned fruitless = 1;
    for (const unsigned looks = machine.looks; machine.looks == looks; ++fruitless)
      waiter.idle(fruitless, 0);
    const std::uint64_t before = waiter.counts().yields;
    waiter.idle(fruitless, 0);
    EXPECT_EQ(waiter.counts().yields, before + 1);
    machine.time += 1;
  }
}

TEST_F(CrowdedWait, YieldsWhereNobodyKnowsWhatRuns) {
  EXPECT_GT(yields({1, 2}, 0), 0u);
}

// Others may run on the other core.
TEST_F(CrowdedWait, YieldsOnAPartOfAMachine) {
  machine.all_cores = 2;
  EXPECT_GT(yields({1, 2}, 3), 0u);
}

} // namespace
} // namespace macadam::net::shm::test
