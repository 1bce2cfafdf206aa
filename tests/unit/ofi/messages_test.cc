// SPDX-License-Identifier: BSD-3-Clause
// Messages, sleeping, and what happens if a process ends.
#include "world.h"

#include "../support/null_transport.h"

#include <atomic>
#include <thread>

namespace macadam::test {
namespace {

TEST(OfiMessages, ArriveOnceAndInOrderBothWays) {
  World world(3);
  constexpr unsigned count = 500;
  std::map<std::pair<Rank, Rank>, unsigned> sent;
  const std::vector<std::pair<Rank, Rank>> ways = {{0, 1}, {1, 0}, {2, 1}, {0, 2}};
  const auto push = [&] {
    bool all = true;
    for (const auto& way : ways) {
      unsigned& n = sent[way];
      while (n < count && world[way.first].send(way.second, message(n)) == Posted::done)
        ++n;
      all = all && n == count && world[way.second].received[way.first].size() == count;
    }
    return all;
  };
  ASSERT_TRUE(world.until(push));
  for (const auto& [from, to] : ways) {
    for (unsigned n = 0; n < count; ++n)
      ASSERT_EQ(world[to].received[from][n], message(n)) << from << " to " << to << ", " << n;
  }
  EXPECT_EQ(world[0].counter("ofi_strangers"), 0u);
  ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }));
}

TEST(OfiMessages, ToOneself) {
  World world(1);
  ASSERT_EQ(world[0].send(0, "myself"), Posted::done);
  EXPECT_FALSE(world[0].transport->drain());
  ASSERT_TRUE(world.until([&] { return world[0].received[0].size() == 1; }));
  EXPECT_EQ(world[0].received[0][0], "myself");
  EXPECT_TRUE(world[0].transport->drain());
}

// The receiver does not poll: what it has not taken is bounded, and nothing is lost.
TEST(OfiMessages, WaitForAReceiverThatComputes) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "first"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  unsigned sent = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (world[0].send(1, message(sent)) == Posted::done) ++sent;
    world[0].transport->poll(world[0]);
  }
  EXPECT_LE(sent, wire::window);
  EXPECT_GE(sent, wire::window / 2);
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1 + sent; }));
  for (unsigned n = 0; n < sent; ++n)
    ASSERT_EQ(world[1].received[0][1 + n], message(n));
}

TEST(OfiMessages, APeerThatPublishesLateIsWaitedFor) {
  World world(2, false);
  world[0].start();
  EXPECT_FALSE(world[0].up(1));
  EXPECT_EQ(world[0].states[1], engine::PeerState::connecting);
  for (int i = 0; i < 10; ++i)
    world[0].transport->poll(world[0]);
  EXPECT_EQ(world[0].states[1], engine::PeerState::connecting);
  world[1].start();
  ASSERT_TRUE(world.send(0, 1, "late"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
}

TEST(OfiMessages, AnAddressOfAnotherNetworkIsRefusedByName) {
  World world(2, false);
  world[0].start();
  world[1].endpoint = world[0].transport->endpoint();
  world[1].endpoint->protocol ^= 1;
  try {
    world[0].link(1);
    FAIL() << "nothing was thrown";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("address of another network"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find("FI_PROVIDER"), std::string::npos) << error.text;
  }
}

bool wakes(const World::Process& process) {
  return !process.transport->provider().starts_with("shm");
}

// The idle() of a wait in vain: it prepares, is polled, and sleeps. Returns how long it took.
double sleep_once(World::Process& process, unsigned longest_us) {
  const double before = process.transport->now();
  for (unsigned fruitless = 0; fruitless < 1'000'000; ++fruitless) {
    const bool next_sleeps = process.transport->idle(fruitless, longest_us);
    if (process.transport->poll(process)) return -1;
    if (!next_sleeps) continue;
    process.transport->idle(fruitless + 1, longest_us);
    return process.transport->now() - before;
  }
  return -1;
}

TEST(OfiWaiting, ASleepEndsWithAMessageAndWithWake) {
  World world(2);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody";
  ASSERT_TRUE(world.send(1, 0, "hello"));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 1; }));
  ASSERT_TRUE(world.until([&] { return world[1].transport->drain(); }));
  // Nothing comes: it lasts as long as it may.
  EXPECT_GE(sleep_once(world[0], 30'000), 0.02);

  world[0].transport->wake();
  EXPECT_LT(sleep_once(world[0], 150'000), 0.1);

  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    while (world[1].send(0, "wake up") != Posted::done)
      world[1].transport->poll(world[1]);
    while (!world[1].transport->drain())
      world[1].transport->poll(world[1]);
  });
  EXPECT_LT(sleep_once(world[0], 190'000), 0.15);
  sender.join();
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 2; }));
}

// A process that sleeps on another network is woken there.
TEST(OfiWaiting, ASleeperElsewhereIsWoken) {
  struct Sleeper final : NullTransport {
    void wake() override { ++woken; }
    std::atomic<int> woken = 0;
  } sleeper;
  World world(2, false);
  world[1].start();
  world[0].start(&sleeper);
  if (!wakes(world[0])) GTEST_SKIP() << "the provider wakes nobody";
  ASSERT_TRUE(world.send(1, 0, "hello"));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == 1; }));
  ASSERT_TRUE(world.until([&] { return world[1].transport->drain(); }));
  while (world[0].transport->poll(world[0])) {
  }
  sleeper.woken = 0;
  world[0].transport->arm();
  while (world[0].transport->poll(world[0])) {
    world[0].transport->arm();
  }
  EXPECT_EQ(sleeper.woken, 0);
  while (world[1].send(0, "again") != Posted::done)
    world[1].transport->poll(world[1]);
  for (int i = 0; i < 5000 && sleeper.woken == 0; ++i) {
    world[1].transport->poll(world[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(sleeper.woken, 0);
}

TEST(OfiFailure, AnEndedProcessIsToldToWhoWaits) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.send(1, 0, "two"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  world[1].transport.reset();
  world[1].its_life = boot::Life::failed;
  ASSERT_TRUE(world.until([&] {
    world[0].transport->arm();
    return world[0].states[1] == engine::PeerState::failed;
  }));
  EXPECT_EQ(world[0].received[1].size(), 1u) << "what it had sent before is delivered";
  EXPECT_EQ(world[0].send(1, "three"), Posted::busy) << "not connected any more";
  EXPECT_EQ(world[0].transport->send(world[0].link(1), "x", 1, nullptr, 0), Posted::done);
  EXPECT_TRUE(world[0].failures.empty());
  EXPECT_TRUE(world[0].transport->drain());
}

// What is under way to a process whose endpoint goes ends, not ok, without anybody's word.
TEST(OfiFailure, OperationsUnderWayEnd) {
  World world(2);
  std::vector<char> there(1 << 20), here(1 << 20);
  const RemoteMemory memory = world[1].transport->register_region(there.data(), there.size());
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  std::uint64_t posted = 0;
  while (posted < 8 && world[0].transport->get(world[0].link(1), here.data(), memory, here.size(),
                                               posted + 1) == Posted::pending)
    ++posted;
  ASSERT_GT(posted, 0u);
  world[1].transport.reset();
  world[1].its_life = boot::Life::failed;
  ASSERT_TRUE(world.until([&] {
    world[0].transport->arm();
    return world[0].completed.size() == posted;
  }));
  EXPECT_TRUE(world[0].failures.empty());
}

TEST(OfiFailure, AbandonEndsAll) {
  World world(2);
  std::vector<char> there(1 << 20), here(1 << 20);
  const RemoteMemory memory = world[1].transport->register_region(there.data(), there.size());
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_EQ(
      world[0].transport->get(world[0].link(1), here.data(), memory, here.size(), 7),
      Posted::pending);
  world[0].transport->abandon(world[0]);
  EXPECT_EQ(world[0].completed.size(), 1u);
  EXPECT_FALSE(world[0].completed[7]);
  world[0].transport.reset();
}

TEST(OfiForget, ARouteGoesAndComesAgain) {
  World world(2);
  ASSERT_TRUE(world.send(0, 1, "one"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  ASSERT_TRUE(world.until([&] { return world[0].transport->forget(1, 1); }));
  world[0].links.clear();
  ASSERT_TRUE(world.send(0, 1, "two"));
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 2; }));
}

} // namespace
} // namespace macadam::test
