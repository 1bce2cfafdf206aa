// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs that fail, waits that sleep, and what is under way at the end.
#include "world.h"

namespace macadam::test {
namespace {

using engine::RemoteMemory;

// Found by tests/gravel/torture: who ends in the middle of a put takes it along.
TEST(Transfer, what_is_under_way_at_the_end_is_lost_and_nothing_else) {
  Model model;
  model.message_mb = 1;
  Settings settings = small_settings();
  settings.rdma_send_depth = 4; // fewer than there are fragments
  World world(2, settings, model);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::vector<std::byte> source(20'000'000), target(source.size());
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  ASSERT_EQ(world[0].transport->put(world[0].link(1), source.data(), remote, source.size(), 7),
            Posted::pending);
  world[0].transport.reset();
  EXPECT_EQ(world[0].device.regions.count(), 0u);
  EXPECT_FALSE(world[0].completed.contains(7));
}

// Nothing of the process's end of a connection goes on, and all is told once.
TEST(Failure, of_a_queue_pair_ends_what_was_under_way) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::vector<std::byte> source(100000), target(100000);
  // A key that is none: the peer refuses, and the queue pair is in error.
  const RemoteMemory wrong{reinterpret_cast<std::uintptr_t>(target.data()), 0x1234567};
  unsigned pending = 0;
  for (std::uint64_t cookie = 1; cookie <= 5; ++cookie) {
    const Posted put =
        world[0].transport->put(world[0].link(1), source.data(), wrong, source.size(), cookie);
    pending += put == Posted::pending ? 1 : 0;
  }
  EXPECT_EQ(pending, 5u);
  world[0].try_send(1, message(900));
  // Until the queue pair is gone it may still read what it was given.
  world[0].on_failed_operation = [&] { EXPECT_EQ(world[0].transport->connections(), 0u); };
  ASSERT_TRUE(world.until([&] { return world[0].states[1] == engine::PeerState::failed; }));
  EXPECT_EQ(world[0].completed.size(), pending);
  for (const auto& [cookie, ok] : world[0].completed)
    EXPECT_FALSE(ok) << cookie;
  world.run();
  EXPECT_EQ(world[0].completed.size(), pending);
  EXPECT_EQ(world[0].changes[1], 2); // connected, failed
  EXPECT_EQ(world[0].transport->connections(), 0u);
  ASSERT_EQ(world[0].transport->fallbacks().size(), 1u);
  EXPECT_NE(world[0].transport->fallbacks()[0].find("rank 1"), std::string::npos);
  EXPECT_EQ(world[0].transport->why_failed(world[0].link(1)),
            "rank 1 on host this host is not reached any more: it refused an access to its memory");
  EXPECT_EQ(world[0].transport->send(world[0].link(1), "x", 1, nullptr, 0), Posted::done);
}

TEST(Failure, random_breaks_are_told_on_both_sides_and_hurt_no_other_pair) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    for (const ReceiveMode mode :
         {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring, ReceiveMode::mixed}) {
      Faults faults;
      faults.queue_pair_break = 0.005;
      World world(4, small_settings(mode), {}, faults, seed);
      world.start();
      std::vector<Stream> streams;
      std::vector<std::pair<Rank, Rank>> pairs;
      for (Rank from = 0; from < 4; ++from) {
        for (Rank to = 0; to < 4; ++to) {
          if (from == to) continue;
          streams.emplace_back(world, from, to, 100);
          pairs.emplace_back(from, to);
        }
      }
      const auto broken = [&](std::size_t i) {
        const auto [from, to] = pairs[i];
        return world[from].states[to] == engine::PeerState::failed &&
               world[to].states[from] == engine::PeerState::failed;
      };
      for (const auto& [from, to] : pairs)
        world[from].link(to);
      ASSERT_TRUE(world.until(
          [&] {
            bool all = true;
            for (std::size_t i = 0; i < streams.size(); ++i)
              all = (broken(i) || (streams[i].push() && streams[i].arrived())) && all;
            return all;
          },
          200000))
          << "seed " << seed;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        if (!broken(i)) {
          streams[i].check();
          continue;
        }
        // A part of the stream, from its beginning.
        const auto [from, to] = pairs[i];
        const std::vector<std::string>& got = world[to].received[from];
        for (unsigned n = 0; n < got.size(); ++n)
          ASSERT_EQ(got[n], message(n));
      }
    }
  }
}

// A process leaves when its last messages have arrived, and not before.
TEST(Drain, waits_for_messages_that_nobody_has_acknowledged) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  ASSERT_EQ(world[0].try_send(1, "last words"), Posted::done);
  EXPECT_FALSE(world[0].transport->drain());
  ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }, 1000, 1));
  world[0].transport.reset();
  world.scheduler.run_until(world.scheduler.now() + 1000 * sim::microsecond);
  for (int i = 0; i < 100; ++i)
    world[1].step();
  ASSERT_EQ(world[1].received[0].size(), 1u);
  EXPECT_EQ(world[1].received[0][0], "last words");
}

TEST(Drain, a_process_at_its_end_still_lets_others_connect) {
  World world(2);
  world.start();
  EXPECT_TRUE(world[1].transport->drain()); // it waits in MPI_Finalize
  Stream stream(world, 0, 1, 1);
  ASSERT_TRUE(world.until([&] { return stream.push(); }, 2000, 1));
  ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }, 2000, 1));
  world[1].transport.reset();
  world.run(10);
}

TEST(Idle, a_message_ends_a_sleep) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  world[0].try_send(1, "x");
  const double before = world[1].device.now();
  for (unsigned fruitless = 0; world[1].received[0].empty(); ++fruitless) {
    if (world[1].transport->poll(world[1])) continue;
    ASSERT_LT(fruitless, 1000u);
    world[1].transport->idle(fruitless, 1000000);
  }
  EXPECT_LT(world[1].device.now() - before, 0.01);
  // Nothing comes: it sleeps as long as it may.
  const std::uint64_t sleeps = world[1].device.counters().sleeps;
  const double start = world[1].device.now();
  for (unsigned fruitless = 0; world[1].device.now() - start < 1; ++fruitless) {
    ASSERT_LT(fruitless, 1000u);
    world[1].transport->poll(world[1]);
    world[1].transport->idle(fruitless, 100000);
  }
  EXPECT_GT(world[1].device.counters().sleeps, sleeps + 5);
}

// How long a wait for nothing looks around before it sleeps, in seconds.
double before_sleep(std::int64_t spin_us, bool cores_are_few) {
  Settings settings = small_settings();
  settings.spin = spin_us;
  World world(2, settings);
  World::Process& own = world[1];
  own.cores_are_few = cores_are_few;
  world.start();
  const double start = own.device.now();
  double looked = start; // last
  for (unsigned fruitless = 0; own.device.counters().sleeps == 0 && fruitless < 2000; ++fruitless) {
    looked = own.device.now();
    own.transport->poll(own);
    own.transport->idle(fruitless, 100000);
  }
  EXPECT_EQ(own.device.counters().sleeps, 1u);
  return looked - start;
}

TEST(Idle, sleeps_after_a_millisecond_and_sooner_where_cores_are_few) {
  constexpr double looks = 60e-6; // before it asks for the time, and the last
  const auto expect = [](double found, double least) {
    EXPECT_GE(found, least);
    EXPECT_LT(found, least + looks);
  };
  expect(before_sleep(-1, false), 1e-3);
  expect(before_sleep(-1, true), 20e-6);
  expect(before_sleep(300, false), 300e-6);
  expect(before_sleep(300, true), 300e-6);
  expect(before_sleep(0, false), 0);
}

TEST(Memory, is_given_back) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::vector<std::byte> memory(1 << 20);
  const std::size_t before = world[1].device.registered_bytes();
  const RemoteMemory remote = world[1].transport->register_cached(memory.data(), memory.size());
  EXPECT_GE(world[1].device.registered_bytes(), before + memory.size());
  world[1].transport->release_cached(remote);
  // Without anyone to tell when memory goes away, nothing stays registered.
  const RemoteMemory other = world[1].transport->register_cached(&memory[5000], 1);
  world[1].transport->release_cached(other);
  EXPECT_DEATH(world[1].transport->release_cached(other), "");
  EXPECT_EQ(world[1].counter("registration_hits"), 0u);
}

} // namespace
} // namespace macadam::test
