// SPDX-License-Identifier: BSD-3-Clause
// A process on shared memory and another network sleeps on the first, and whatever comes on either
// ends the sleep.
#include "../support/null_transport.h"
#include "endpoint.h"
#include "engine/networks.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <random>

namespace macadam::net::shm::test {
namespace {

double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The other network: as with RDMA, messages lie there until they are polled, and only if the
// network was armed its progress thread, here a thread of the test, is told of the next one.
class Inbox final : public macadam::test::NullTransport {
 public:
  explicit Inbox(engine::Transport& sleeper) : sleeper_(sleeper) {}

  // By the progress thread.
  void deliver() {
    arrived_.fetch_add(1);
    if (armed_.exchange(false)) sleeper_.wake();
  }
  bool poll(Sink& sink) noexcept override {
    if (arm_wanted_.exchange(false)) armed_.store(true);
    if (arrived_.load() == taken_) return false;
    ++taken_;
    sink.on_message(other, nullptr, 0);
    return true;
  }
  void arm() override { arm_wanted_.store(true); }

  static constexpr Rank other = 99;

 private:
  engine::Transport& sleeper_;
  std::atomic<unsigned> arrived_ = 0;
  unsigned taken_ = 0;
  std::atomic<bool> arm_wanted_ = false, armed_ = false;
};

// A thread that delivers a message when it is asked to, after a pause.
class ProgressThread {
 public:
  explicit ProgressThread(Inbox& inbox) : thread_([this, &inbox] { run(inbox); }) {}
  ~ProgressThread() {
    ask(-1);
    thread_.join();
  }
  void ask(double pause) {
    const std::scoped_lock guard(lock_);
    pause_ = pause;
    asked_ = true;
    changed_.notify_one();
  }

 private:
  void run(Inbox& inbox) {
    std::unique_lock guard(lock_);
    for (;;) {
      changed_.wait(guard, [this] { return asked_; });
      asked_ = false;
      if (pause_ < 0) return;
      const double until = seconds() + pause_;
      if (pause_ > 1e-3) usleep(static_cast<useconds_t>(1e6 * pause_));
      while (seconds() < until) {
      }
      inbox.deliver();
    }
  }
  std::mutex lock_;
  std::condition_variable changed_;
  double pause_ = 0;
  bool asked_ = false;
  std::thread thread_;
};

// Waits as MPI does until a message has come. How long it took.
double wait_for_message(Endpoint& self, const engine::Networks& networks, unsigned fruitless) {
  constexpr unsigned longest_us = 20'000'000; // a lost wake-up would last so long
  const double start = seconds();
  const std::uint64_t before = self.messages;
  while (self.messages == before) {
    if (!networks.poll(self)) networks.idle(++fruitless, longest_us);
  }
  networks.resume();
  return seconds() - start;
}

// Each message finds the process in another stage of falling asleep, and comes by either network.
TEST(TwoNetworks, NoMessageOfEitherIsSleptThrough) {
  Job job(2, 1); // told that they share a core: they sleep soon
  constexpr unsigned rounds = 2000;
  run_processes(job, [&](Rank rank) {
    Job::View view(job, rank);
    const base::Settings settings;
    Endpoint self(view, settings);
    std::mt19937 random(7); // the same in both: they agree on who sends next
    if (rank == 1) {
      for (unsigned i = 0; i < rounds; ++i) {
        const bool by_mailbox = random() % 2 == 0;
        const double pause = 1e-7 * static_cast<double>(random() % 1000);
        if (by_mailbox) continue;
        self.receive();
        const double until = seconds() + pause;
        while (seconds() < until) {
        }
        self.send_text(0, "x");
      }
      EXPECT_EQ(self.receive(), "end");
      return;
    }
    Inbox inbox(self.transport());
    const engine::Networks networks({&self.transport(), &inbox});
    ProgressThread progress_thread(inbox);
    unsigned from_mailbox = 0;
    self.on_message_do = [&](Rank source, const std::byte*, std::size_t) {
      from_mailbox += source == Inbox::other ? 1 : 0;
    };
    unsigned wanted = 0;
    for (unsigned i = 0; i < rounds; ++i) {
      const bool by_mailbox = random() % 2 == 0;
      const double pause = 1e-7 * static_cast<double>(random() % 1000);
      if (by_mailbox)
        progress_thread.ask(pause);
      else
        self.send_text(1, "now");
      wanted += by_mailbox ? 1 : 0;
      const unsigned late = 36 + i % 6; // in its wait
      ASSERT_LT(wait_for_message(self, networks, late), 15.0) << "slept through message " << i;
      ASSERT_EQ(from_mailbox, wanted);
    }
    EXPECT_GT(self.counter("sleeps"), rounds / 50);
    self.send_text(1, "end");
  });
}

TEST(TwoNetworks, ARankBlockedForSecondsLeavesItsCore) {
  Job job(2, 2);
  Job::View view(job, 0);
  const base::Settings settings;
  Endpoint self(view, settings);
  Inbox inbox(self.transport());
  const engine::Networks networks({&self.transport(), &inbox});
  ProgressThread progress_thread(inbox);
  constexpr double pause = 2;
  const double cpu = cpu_seconds();
  progress_thread.ask(pause);
  const double waited = wait_for_message(self, networks, 0);
  EXPECT_GT(waited, 0.9 * pause);
  EXPECT_LT(waited, pause + 10) << "the sleep was not ended";
  EXPECT_LT(cpu_seconds() - cpu, 0.05 * pause);
  EXPECT_GE(self.counter("sleeps"), 1u);
}

// One thread sleeps while another one polls and takes the message that the first waits for.
TEST(TwoNetworks, PollingTheOtherRousesAThreadThatSleeps) {
  Job job(1);
  Job::View view(job, 0);
  const base::Settings settings;
  Endpoint self(view, settings);
  std::atomic<bool> falls_asleep = false, roused = false;
  std::thread sleeper([&] {
    // Past the spinning: announce, then sleep.
    for (unsigned fruitless = 1; fruitless <= 128; ++fruitless)
      self.transport().idle(fruitless, 0);
    usleep(3000);
    EXPECT_TRUE(self.transport().idle(130, 0));
    falls_asleep = true;
    EXPECT_FALSE(self.transport().idle(131, 20'000'000));
    roused = true;
  });
  while (!falls_asleep)
    std::this_thread::yield();
  usleep(20000);
  EXPECT_FALSE(roused);
  const double start = seconds();
  self.transport().wake();
  sleeper.join();
  EXPECT_LT(seconds() - start, 10.0);
}

} // namespace
} // namespace macadam::net::shm::test
