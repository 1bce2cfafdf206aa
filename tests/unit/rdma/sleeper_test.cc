// SPDX-License-Identifier: BSD-3-Clause
// A process that sleeps on another network: once armed, whatever arrives over RDMA wakes it, in
// every receive mode; and nothing wakes it that was not asked for.
#include "world.h"

namespace macadam::test {
namespace {

class Sleeper final : public NullTransport {
 public:
  int woken = 0;
  void wake() override { ++woken; }
};

class Sleep : public testing::TestWithParam<ReceiveMode> {
 protected:
  Sleep() : world(2, small_settings(GetParam())) {
    own.start(own.device, &sleeper);
    peer.start();
  }
  void connect() {
    Stream there(world, 0, 1, 1), back(world, 1, 0, 1);
    ASSERT_TRUE(world.until([&] { return there.push() && back.push() && back.arrived(); }));
    world.run();
  }
  // A poll that finds nothing, after being told that a sleep is near.
  void fall_asleep() {
    own.transport->arm();
    ASSERT_FALSE(own.transport->poll(own));
    sleeper.woken = 0;
  }
  // Only the peer polls: the process sleeps (for the simulation: computes, so that the progress
  // thread may come).
  void sleep() {
    for (int round = 0; round < 200; ++round) {
      peer.step();
      own.device.compute(10 * sim::microsecond);
    }
  }

  Sleeper sleeper; // outlives the transports
  World world;
  World::Process& own = world[0];
  World::Process& peer = world[1];
};

TEST_P(Sleep, ends_when_a_message_arrives) {
  connect();
  fall_asleep();
  sleep();
  EXPECT_EQ(sleeper.woken, 0) << "nothing has arrived";
  ASSERT_EQ(peer.try_send(0, "wake up"), Posted::done);
  sleep();
  EXPECT_EQ(sleeper.woken, 1);
  ASSERT_TRUE(world.until([&] { return own.received[1].size() == 2; }));
  EXPECT_EQ(own.received[1].back(), "wake up");
}

TEST_P(Sleep, is_not_disturbed_unasked) {
  connect();
  sleeper.woken = 0;
  ASSERT_EQ(peer.try_send(0, "not armed"), Posted::done);
  sleep();
  EXPECT_EQ(sleeper.woken, 0);
  // What came before the arming is found by the poll that arms.
  own.transport->arm();
  EXPECT_TRUE(own.transport->poll(own));
  EXPECT_EQ(sleeper.woken, 1) << "another thread may wait for what was found";
}

TEST_P(Sleep, ends_when_a_put_is_complete) {
  connect();
  std::vector<char> data(5000, 'x'), target(5000);
  const RemoteMemory memory = peer.transport->register_cached(target.data(), target.size());
  ASSERT_EQ(own.transport->put(own.link(1), data.data(), memory, data.size(), 42), Posted::pending);
  fall_asleep();
  sleep();
  EXPECT_GE(sleeper.woken, 1);
  ASSERT_TRUE(world.until([&] { return own.completed.contains(42); }));
  EXPECT_EQ(target, data);
  peer.transport->release_cached(memory);
}

TEST_P(Sleep, ends_when_a_connection_comes_up) {
  fall_asleep();
  EXPECT_EQ(own.transport->longest_sleep_us(), UINT_MAX);
  engine::PeerState state;
  own.links[1] = &own.transport->connect(1, state);
  own.states[1] = state;
  EXPECT_LE(own.transport->longest_sleep_us(), 1000u) << "packets may have to be sent again";
  sleep();
  EXPECT_GE(sleeper.woken, 1);
  ASSERT_TRUE(world.until([&] { return own.up(1); }));
}

INSTANTIATE_TEST_SUITE_P(Modes, Sleep,
                         testing::Values(ReceiveMode::shared, ReceiveMode::credit,
                                         ReceiveMode::ring, ReceiveMode::mixed));

} // namespace
} // namespace macadam::test
