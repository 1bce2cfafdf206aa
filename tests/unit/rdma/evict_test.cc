// SPDX-License-Identifier: BSD-3-Clause
// Fewer queue pairs than peers: idle connections are closed for others and come back when used;
// nothing is lost, doubled or overtaken.
#include "world.h"

#include <random>

namespace macadam::test {
namespace {

// Every rank sends to every other, in an order of its own.
void all_to_all(World& world, unsigned count, int rounds, std::uint64_t seed = 1) {
  const auto size = static_cast<Rank>(world.processes.size());
  std::vector<std::vector<Stream>> streams(size);
  std::mt19937_64 random(seed);
  for (Rank from = 0; from < size; ++from) {
    for (Rank to = 0; to < size; ++to) {
      if (from != to) streams[from].emplace_back(world, from, to, count);
    }
    std::shuffle(streams[from].begin(), streams[from].end(), random);
  }
  ASSERT_TRUE(world.until(
      [&] {
        bool all = true;
        for (auto& of_one : streams) {
          for (Stream& stream : of_one)
            all = stream.push() && stream.arrived() && all;
        }
        return all;
      },
      rounds))
      << "stands still";
  for (const auto& of_one : streams) {
    for (const Stream& stream : of_one)
      stream.check();
  }
}

struct Case {
  ReceiveMode mode;
  std::int64_t queue_pairs; // with the one for datagrams
  Rank size;
};

class Few : public testing::TestWithParam<Case> {};

TEST_P(Few, queue_pairs_serve_many_peers) {
  Settings settings = small_settings(GetParam().mode);
  settings.rdma_queue_pairs = GetParam().queue_pairs;
  World world(GetParam().size, settings);
  world.start();
  all_to_all(world, 20, 3000000);
  std::uint64_t evicted = 0;
  for (auto& process : world.processes) {
    EXPECT_LE(process->device.counters().queue_pairs_most,
              static_cast<std::uint64_t>(GetParam().queue_pairs));
    EXPECT_EQ(process->counter("broken"), 0u);
    evicted += process->counter("evicted");
  }
  EXPECT_GT(evicted, 0u);
  EXPECT_EQ(world.fabric.counters.resends, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, Few,
    testing::Values(Case{ReceiveMode::shared, 2, 3}, Case{ReceiveMode::shared, 2, 6},
                    Case{ReceiveMode::shared, 4, 9}, Case{ReceiveMode::credit, 2, 5},
                    Case{ReceiveMode::credit, 3, 7}, Case{ReceiveMode::ring, 2, 5},
                    Case{ReceiveMode::ring, 4, 8}, Case{ReceiveMode::mixed, 2, 5},
                    Case{ReceiveMode::mixed, 4, 9}),
    [](const auto& at) {
      const char* const mode = at.param.mode == ReceiveMode::shared   ? "shared"
                               : at.param.mode == ReceiveMode::mixed  ? "mixed"
                               : at.param.mode == ReceiveMode::credit ? "credit"
                                                                      : "ring";
      return mode + std::to_string(at.param.queue_pairs) + "of" + std::to_string(at.param.size);
    });

// Found by tests/gravel/torture: its adapter has taken our close note, and it ends without its own.
TEST(Few, who_ends_before_it_answers_is_missed) {
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 2; // with the one for datagrams
  World world(3, settings);
  world.start();
  Stream first(world, 0, 1, 1);
  ASSERT_TRUE(world.until([&] { return first.push() && first.arrived(); }));
  Stream second(world, 0, 2, 1);
  // Rank 1 computes, so it does not answer; then it is gone.
  world.until([&] { return second.push(); }, 1000, 1);
  EXPECT_FALSE(second.arrived());
  world[1].transport.reset();
  ASSERT_TRUE(world.until([&] { return second.push() && second.arrived(); }, 3'000'000));
  second.check();
  EXPECT_EQ(world[0].states[1], engine::PeerState::failed);
}

// The next in line is connected at once, and so leaves the line while it is walked.
TEST(Few, who_gives_up_lets_the_next_in) {
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 2; // with the one for datagrams
  World world(2, settings);
  world.start();
  world[1].transport.reset();
  EXPECT_FALSE(world[0].up(1));
  alignas(8) std::uint64_t word = 5;
  std::uint64_t result = 0;
  const RemoteMemory own = world[0].transport->register_region(&word, sizeof word);
  const auto add = [&] {
    return world[0].transport->atomic(world[0].link(0), {.operand = 1}, own, &result, 1);
  };
  EXPECT_EQ(add(), Posted::busy); // over a connection to itself
  world[0].device.compute(sim::from_seconds(21));
  ASSERT_TRUE(world.until([&] { return add() != Posted::busy; }, 2000));
  ASSERT_TRUE(world.until([&] { return world[0].completed.count(1) != 0; }));
  EXPECT_EQ(result, 5u);
  EXPECT_EQ(world[0].states[1], engine::PeerState::failed);
  world[0].transport->deregister_region(own);
}

class FewAndBad : public testing::TestWithParam<unsigned> {};

TEST_P(FewAndBad, datagrams_as_well) {
  Faults faults;
  faults.datagram_loss = 0.2;
  faults.datagram_duplication = 0.2;
  faults.datagram_reordering = 0.3;
  faults.reordering_ns = 2e6;
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 2 + GetParam() % 3;
  World world(5, settings, {}, faults, GetParam());
  world.start();
  all_to_all(world, 5, 5000000, GetParam());
  for (auto& process : world.processes)
    EXPECT_EQ(process->counter("broken"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FewAndBad, testing::Range(1u, 31u));

TEST(Evict, a_circle_of_requests_is_broken) {
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 2; // one connection each
  World world(3, settings);
  world.start();
  // Each asks the next, and all have given away their only queue pair.
  Stream a(world, 0, 1, 3);
  Stream b(world, 1, 2, 3);
  Stream c(world, 2, 0, 3);
  a.push();
  b.push();
  c.push();
  ASSERT_TRUE(world.until(
      [&] {
        const bool first = a.push() && a.arrived();
        const bool second = b.push() && b.arrived();
        return c.push() && c.arrived() && first && second;
      },
      500000));
  a.check();
  b.check();
  c.check();
  std::uint64_t withdrawn = 0;
  for (Rank rank = 0; rank < 3; ++rank)
    withdrawn += world[rank].counter("requests_withdrawn");
  EXPECT_GT(withdrawn, 0u);
}

TEST(Evict, the_connection_used_longest_ago_goes) {
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 3; // two connections
  World world(4, settings);
  world.start();
  const auto talk = [&](Rank to) {
    const std::size_t before = world[to].received[0].size();
    ASSERT_TRUE(world.until([&] { return world[0].try_send(to, "x") == Posted::done; }));
    ASSERT_TRUE(world.until([&] { return world[to].received[0].size() == before + 1; }));
  };
  talk(1);
  talk(2);
  talk(1);
  talk(3); // closes the one to 2
  world.run();
  EXPECT_EQ(world[1].counter("connections_closed"), 0u);
  EXPECT_EQ(world[2].counter("connections_closed"), 1u);
  talk(2);
  EXPECT_EQ(world[2].counter("connections"), 2u);
  EXPECT_EQ(world[0].changes[2], 1); // the engine is told once and knows nothing of this
}

TEST(Evict, a_peer_that_computes_is_not_waited_for_if_another_connection_is_idle) {
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 3; // two connections
  World world(4, settings);
  world.start();
  for (Rank to : {1u, 2u}) {
    Stream stream(world, 0, to, 1);
    ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }));
  }
  Stream stream(world, 0, 3, 3);
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }, 20000, 1));
  stream.check();
  EXPECT_EQ(world[2].counter("connections_closed"), 1u);
  Stream back(world, 0, 1, 3);
  world[1].received.clear();
  ASSERT_TRUE(world.until([&] { return back.push() && back.arrived(); }, 50000));
  back.check();
}

// Longer than a peer without a sign of life is waited for: the progress thread says that it is
// there.
TEST(Evict, a_rank_that_computes_for_long_lets_others_wait_and_does_not_lose_them) {
  Settings settings = small_settings();
  settings.rdma_queue_pairs = 2;
  World world(3, settings);
  world.start();
  Stream between(world, 1, 2, 3);
  ASSERT_TRUE(world.until([&] { return between.push() && between.arrived(); }));
  Stream stream(world, 0, 1, 3);
  for (int tenths = 0; tenths < 300; ++tenths) {
    EXPECT_FALSE(stream.push());
    world[0].step();
    for (Rank rank : {0u, 1u, 2u})
      world[rank].device.compute(sim::from_seconds(0.1));
  }
  EXPECT_EQ(world[0].states[1], engine::PeerState::connecting);
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }, 200000));
  stream.check();
}

TEST(Evict, a_peer_that_is_closed_costs_its_record_only) {
  for (const ReceiveMode mode :
       {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring, ReceiveMode::mixed}) {
    Settings settings = small_settings(mode);
    settings.rdma_queue_pairs = 2; // one connection
    World world(9, settings);
    world.start();
    std::size_t with_one = 0;
    for (Rank to = 1; to < 9; ++to) {
      ASSERT_TRUE(world.until([&] { return world[0].try_send(to, "x") == Posted::done; }));
      ASSERT_TRUE(world.until([&] { return world[to].received[0].size() == 1; }));
      if (to == 1) with_one = world[0].transport->memory_bytes();
      EXPECT_EQ(world[0].transport->connections(), 1u);
      EXPECT_LE(world[0].transport->memory_bytes(), with_one + (to - 1) * 256);
    }
  }
}

TEST(Evict, the_device_may_have_fewer_than_it_says) {
  Settings settings = small_settings();
  Model model;
  model.queue_pairs = 3;
  World world(6, settings, model);
  world.start();
  all_to_all(world, 5, 1000000);
}

} // namespace
} // namespace macadam::test
