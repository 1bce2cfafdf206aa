// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fiber.h"

#include "sim/processor.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

using sim::Fiber;

constexpr std::size_t stack = 256 << 10;

TEST(Fiber, stops_and_goes_on) {
  std::string order;
  Fiber fiber(stack, [&] {
    order += "1";
    Fiber::suspend();
    order += "2";
  });
  EXPECT_EQ(Fiber::current(), nullptr);
  fiber.resume();
  order += "a";
  EXPECT_FALSE(fiber.ended());
  fiber.resume();
  EXPECT_TRUE(fiber.ended());
  EXPECT_EQ(order, "1a2");
}

TEST(Fiber, leaves_from_a_deep_call) {
  bool after = false;
  const auto inner = [](bool go) {
    if (go) Fiber::leave();
  };
  Fiber fiber(stack, [&] {
    inner(true);
    after = true;
  });
  fiber.resume();
  EXPECT_TRUE(fiber.ended());
  EXPECT_FALSE(after);
}

// A rank may wait inside a catch block: MPI's error handlers are called in one.
TEST(Fiber, exceptions_being_handled_belong_to_the_fiber) {
  std::vector<std::string> caught;
  const auto body = [&](const char* name) {
    return [&caught, name] {
      try {
        throw std::runtime_error(name);
      } catch (const std::runtime_error&) {
        Fiber::suspend();
        try {
          throw;
        } catch (const std::runtime_error& again) {
          caught.emplace_back(again.what());
        }
      }
    };
  };
  Fiber one(stack, body("one")), two(stack, body("two"));
  one.resume();
  two.resume();
  EXPECT_EQ(std::current_exception(), nullptr);
  one.resume();
  two.resume();
  EXPECT_EQ(caught, (std::vector<std::string>{"one", "two"}));
}

TEST(Fiber, errno_belongs_to_the_fiber) {
  int seen = 0;
  Fiber fiber(stack, [&] {
    errno = ERANGE;
    Fiber::suspend();
    seen = errno;
  });
  fiber.resume();
  errno = EPERM;
  fiber.resume();
  EXPECT_EQ(seen, ERANGE);
  EXPECT_EQ(errno, EPERM);
}

TEST(Fiber, thousands_take_memory_only_as_they_touch_it) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  int sum = 0;
  for (int i = 0; i < 4096; ++i)
    fibers.push_back(std::make_unique<Fiber>(stack, [&sum, i] {
      Fiber::suspend();
      sum += i;
    }));
  for (auto& fiber : fibers)
    fiber->resume();
  EXPECT_LE(fibers[100]->touched_bytes(), 32u << 10);
  for (auto& fiber : fibers)
    fiber->resume();
  EXPECT_EQ(sum, 4096 * 4095 / 2);
}

TEST(Processor, a_fiber_that_computes_lets_the_world_go_on) {
  sim::Scheduler scheduler;
  sim::Processor fast(scheduler), slow(scheduler);
  std::string order;
  Fiber one(stack, [&] {
    fast.compute(10);
    order += "fast ";
    fast.compute(5);
    order += "fast ";
  });
  Fiber two(stack, [&] {
    slow.compute(12);
    order += "slow ";
  });
  fast.run_in(&one);
  slow.run_in(&two);
  scheduler.at(0, [&one] { one.resume(); });
  scheduler.at(0, [&two] { two.resume(); });
  while (scheduler.step()) {
  }
  EXPECT_EQ(order, "fast slow fast ");
  EXPECT_EQ(scheduler.now(), 15);
}

TEST(Processor, what_is_stolen_from_a_computation_comes_on_top) {
  sim::Scheduler scheduler;
  sim::Processor processor(scheduler);
  scheduler.at(50, [&processor] { processor.steal(30); });
  scheduler.at(120, [&processor] { processor.steal(5); });
  processor.compute(100);
  EXPECT_EQ(processor.now(), 135);
}

TEST(Processor, sleep_ends_with_wake_or_with_time) {
  sim::Scheduler scheduler;
  sim::Processor processor(scheduler);
  scheduler.at(50, [&processor] { processor.wake(); });
  EXPECT_TRUE(processor.sleep(100));
  EXPECT_EQ(processor.now(), 50);
  EXPECT_FALSE(processor.sleep(100));
  EXPECT_EQ(processor.now(), 100);
}

} // namespace
} // namespace macadam::test
