// SPDX-License-Identifier: BSD-3-Clause
// Two jobs that know each other meet at a port without mpiexec, or go to it.
#include "boot/at_port.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace macadam::boot {
namespace {

using namespace std::chrono_literals;

constexpr PortKey port = {1, 2, 3, 4, 5, 6, 7, 8, 9};

// What mpiexec would answer.
class Elsewhere final : public Pending<Met> {
 public:
  [[nodiscard]] bool done() noexcept override { return false; }
  Met take() override { return {}; }
};

// Stands still until it is set.
struct Clock {
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::time_point<Clock, duration>;
  static time_point now() { return at; }
  static inline time_point at;
};

// A process that has a job of one, and knows another.
struct Side {
  Side() { memory.row(0).state.store(RankState::running); }
  Door& door() { return memory.door(0); }
  void meet(const Side& other) {
    known.add(
        {.job = other.memory.header().secret},
        std::make_shared<MetJob>(receive_memory(fcntl(other.memory.fd(), F_DUPFD_CLOEXEC, 0))));
  }

  JobMemory memory = JobMemory::create({{"here", 1}}, 0, 1);
  Acquaintances known;
  DoorUse use;
  bool asked = false;

  using Accepts = AtPort<AcceptingSide, Clock>;
  using Connects = AtPort<KnockingSide, Clock>;
  Accepts accept() { return Accepts(ask(), door(), PortMark::of(port), known, use); }
  Connects connect(const Secret& job) {
    const auto* const owner = known.find(job);
    return Connects(ask(), door(), *owner->job->door(0), port,
                    ProcessName{number_of(memory.header().secret), 0}, *owner, 0u, use);
  }

 private:
  std::function<PendingResult<Met>()> ask() {
    return [this] {
      asked = true;
      return std::make_unique<Elsewhere>();
    };
  }
};

class AtPortTest : public testing::Test {
 protected:
  // Another process holds the memory, as mpiexec does: who asks for a lock does not see its own.
  void SetUp() override {
    accepts.meet(connects);
    connects.meet(accepts);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    holder = fork();
    if (holder == 0) {
      accepts.memory.hold();
      connects.memory.hold();
      [[maybe_unused]] const ssize_t written = write(ready[1], "", 1);
      for (;;)
        pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  void TearDown() override { end_holder(); }
  void end_holder() {
    if (holder <= 0) return;
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
    holder = 0;
  }
  [[nodiscard]] const Secret& secret() const { return accepts.memory.header().secret; }

  Side accepts, connects;
  pid_t holder = 0;
};

TEST_F(AtPortTest, meets_whom_it_knows) {
  std::uint32_t last = 0;
  for (int round = 0; round < 3; ++round) {
    auto accepting = accepts.accept();
    auto connecting = connects.connect(secret());
    EXPECT_FALSE(connecting.done()); // has knocked
    ASSERT_TRUE(accepting.done());
    ASSERT_TRUE(connecting.done());
    const Met one = accepting.take(), other = connecting.take();
    EXPECT_EQ(read_ticket(one.job).job, connects.memory.header().secret);
    EXPECT_EQ(read_ticket(other.job).job, secret());
    EXPECT_EQ(one.meeting, other.meeting);
    EXPECT_NE(one.meeting, last);
    last = one.meeting;
  }
  EXPECT_FALSE(accepts.asked || connects.asked);
}

TEST_F(AtPortTest, goes_to_mpiexec_where_nobody_comes) {
  auto accepting = accepts.accept();
  EXPECT_FALSE(accepting.done());
  EXPECT_FALSE(accepts.asked);
  Clock::at += 1s;
  EXPECT_FALSE(accepting.done());
  EXPECT_TRUE(accepts.asked);
  auto connecting = connects.connect(secret());
  EXPECT_FALSE(connecting.done());
  EXPECT_TRUE(connects.asked); // at once: there is nobody at the door
}

TEST_F(AtPortTest, lets_those_go_first_who_wait_with_mpiexec) {
  accepts.door().awaited.store(1);
  auto accepting = accepts.accept();
  EXPECT_FALSE(accepting.done());
  EXPECT_TRUE(accepts.asked);
}

TEST_F(AtPortTest, sends_strangers_and_those_for_other_ports_away) {
  accepts.known.part(*accepts.known.find(connects.memory.header().secret)->job);
  accepts.known.drop_unused();
  auto accepting = accepts.accept();
  auto connecting = connects.connect(secret());
  EXPECT_FALSE(connecting.done());
  EXPECT_FALSE(accepting.done());
  EXPECT_FALSE(connecting.done());
  EXPECT_TRUE(accepts.asked && connects.asked);
}

TEST_F(AtPortTest, leaves_one_that_was_stopped) {
  auto accepting = accepts.accept();
  auto connecting = connects.connect(secret());
  EXPECT_FALSE(connecting.done()); // has knocked
  Clock::at += 1s;
  EXPECT_FALSE(connecting.done());
  EXPECT_TRUE(connects.asked);
  EXPECT_FALSE(accepting.done()); // goes on, and finds that the other one has gone
  EXPECT_TRUE(accepts.asked);
}

TEST_F(AtPortTest, has_no_door_where_nobody_runs) {
  const Acquaintances::Acquaintance* const owner = connects.known.find(secret());
  EXPECT_NE(owner->job->door(0), nullptr);
  EXPECT_EQ(owner->job->door(1), nullptr);
  accepts.memory.row(0).state.store(RankState::dead);
  EXPECT_EQ(owner->job->door(0), nullptr);
  EXPECT_TRUE(owner->job->has_ended());
}

TEST_F(AtPortTest, sees_that_mpiexec_was_killed) {
  const Acquaintances::Acquaintance* const owner = connects.known.find(secret());
  EXPECT_NE(owner->job->door(0), nullptr);
  end_holder();
  usleep(2000);
  EXPECT_EQ(owner->job->door(0), nullptr);
}

TEST(Acquaintances, keeps_the_last_few_that_run) {
  // Of jobs that nobody holds: they have ended, and go when they are parted from.
  Side self, other;
  self.meet(other);
  const Secret secret = other.memory.header().secret;
  self.known.remember(secret, port, 3);
  ASSERT_TRUE(self.known.owner_of(port));
  EXPECT_EQ(self.known.owner_of(port)->rank, 3u);
  self.known.part(*self.known.find(secret)->job);
  EXPECT_TRUE(self.known.empty());
  EXPECT_FALSE(self.known.owner_of(port));
}

} // namespace
} // namespace macadam::boot
