// SPDX-License-Identifier: BSD-3-Clause
// Waiting: no message is slept through, a long wait costs no core, many ranks share few cores.
#include "endpoint.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <ctime>
#include <random>

namespace macadam::net::shm::test {
namespace {

double cpu_seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Two ranks that are told they share a core sleep soon; each message finds the other in another
// stage of falling asleep.
TEST(Wait, NoMessageIsSleptThrough) {
  Job job(2, 1);
  run_processes(job, [&](Rank rank) {
    Job::View view(job, rank);
    const base::Settings settings;
    Endpoint self(view, settings);
    std::mt19937 random(rank);
    constexpr std::uint64_t rounds = 3000;
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      if (i % 2 == rank) {
        // A pause of 0 to 100 us: the receiver spins, yields, announces its sleep or sleeps.
        const double until = seconds() + 1e-7 * static_cast<double>(random() % 1000);
        while (seconds() < until) {
        }
        self.send_text(1 - rank, "x");
      } else {
        const double start = seconds();
        unsigned fruitless = 36 + static_cast<unsigned>(random() % 6); // late in its wait
        while (self.inbox.empty()) {
          // A lost wake-up would last these 20 s.
          if (!self.transport().poll(self)) self.transport().idle(++fruitless, 20'000'000);
        }
        self.inbox.pop_front();
        self.transport().resume();
        ASSERT_LT(seconds() - start, 15.0) << "slept through message " << i;
      }
    }
    EXPECT_GT(self.counter("sleeps"), rounds / 50);
  });
}

TEST(Wait, ARankBlockedForSecondsLeavesItsCore) {
  Job job(2, 2);
  run_processes(job, [&](Rank rank) {
    Job::View view(job, rank);
    const base::Settings settings;
    Endpoint self(view, settings);
    if (rank == 1) {
      usleep(1'500'000);
      self.send_text(0, "late");
    } else {
      const double cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
      EXPECT_EQ(self.receive(), "late");
      EXPECT_LT(cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, 0.05 * 1.5);
      EXPECT_GE(self.counter("sleeps"), 1u);
      self.send_text(1, "end");
    }
    if (rank == 1) {
      EXPECT_EQ(self.receive(), "end");
    }
  });
}

TEST(Wait, ASleepEndsByItself) {
  Job job(2, 1);
  Job::View view(job, 0);
  const base::Settings settings;
  Endpoint self(view, settings);
  const double start = seconds();
  for (unsigned fruitless = 1; fruitless < 50; ++fruitless) {
    EXPECT_FALSE(self.transport().poll(self));
    self.transport().idle(fruitless, 2000);
  }
  EXPECT_LT(seconds() - start, 5.0);
  EXPECT_GE(self.counter("sleeps"), 1u);
  EXPECT_GE(self.counter("yields"), 1u);
}

// A thread sleeps in idle() while another one polls and finds the message.
TEST(Wait, PollingRousesAnotherThreadThatSleeps) {
  Job job(1);
  Job::View view(job, 0);
  const base::Settings settings;
  Endpoint self(view, settings);
  std::atomic<bool> falls_asleep = false;
  std::atomic<bool> roused = false;
  self.send_text(0, "there before the sleep");
  std::thread sleeper([&] {
    // Past the spinning: announce, then sleep. Nothing is polled between, so only rousing ends it.
    for (unsigned fruitless = 1; fruitless <= 128; ++fruitless)
      self.transport().idle(fruitless, 0);
    usleep(3000);
    self.transport().idle(130, 0);
    falls_asleep = true;
    self.transport().idle(131, 20'000'000);
    roused = true;
  });
  while (!falls_asleep)
    std::this_thread::yield();
  usleep(20000);
  EXPECT_FALSE(roused);
  const double start = seconds();
  EXPECT_TRUE(self.transport().poll(self));
  sleeper.join();
  EXPECT_LT(seconds() - start, 10.0);
}

// Eight ranks pass a token round a ring while each computes: with two cores, the time must be near
// that of the computing alone, shared out among the cores.
TEST(Wait, RanksThatShareCoresComputeAtFullSpeed) {
  const cpu_set_t all = [] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  constexpr Rank ranks = 8;
  constexpr int rounds = 100;
  Job job(ranks, static_cast<unsigned>(CPU_COUNT(&all)));
  // Processor time is compared, not time on the wall, which other programs lengthen.
  run_processes(job, [&](Rank rank) {
    Job::View view(job, rank);
    const base::Settings settings;
    Endpoint self(view, settings);
    double waited = 0;
    double computed = 0;
    volatile std::uint64_t sum = 0;
    for (int round = 0; round < rounds; ++round) {
      const double start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
      while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start < 500e-6)
        sum = sum + 1;
      const double mid = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
      self.send_text((rank + 1) % ranks, "token");
      EXPECT_EQ(self.receive(), "token");
      computed += mid - start;
      waited += cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - mid;
    }
    EXPECT_LT(waited, computed) << "waiting took as much of the cores as computing";
  });
}

} // namespace
} // namespace macadam::net::shm::test
