// SPDX-License-Identifier: BSD-3-Clause
// Connections on demand: one handshake however the packets come.
#include "world.h"

namespace macadam::test {
namespace {

TEST(Connect, the_first_message_opens_the_connection) {
  World world(3);
  world.start();
  EXPECT_EQ(world[0].transport->connections(), 0u);
  Stream stream(world, 0, 1, 20);
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }));
  stream.check();
  EXPECT_EQ(world[0].transport->connections(), 1u);
  EXPECT_EQ(world[1].transport->connections(), 1u);
  EXPECT_EQ(world[2].transport->connections(), 0u); // nobody talked to it
  EXPECT_EQ(world[0].changes[1], 1);                // told once
  EXPECT_EQ(world[1].changes.count(0), 0u);         // never asked for
  EXPECT_EQ(world[1].counter("connections_accepted"), 1u);
}

TEST(Connect, the_receiver_computes_meanwhile) {
  World world(2);
  world.start();
  Stream stream(world, 0, 1, 5);
  ASSERT_TRUE(world.until([&] { return stream.push(); }, 20000, 1)) << "the receiver had to act";
  EXPECT_TRUE(world[1].received.empty());
  ASSERT_TRUE(world.until([&] { return stream.arrived(); }));
  stream.check();
}

TEST(Connect, both_sides_at_once_make_one_connection) {
  World world(2);
  world.start();
  Stream there(world, 0, 1, 30);
  Stream back(world, 1, 0, 30);
  there.push();
  back.push();
  ASSERT_TRUE(world.until([&] {
    const bool sent = there.push();
    return back.push() && sent && there.arrived() && back.arrived();
  }));
  there.check();
  back.check();
  for (Rank rank : {0u, 1u}) {
    EXPECT_EQ(world[rank].transport->connections(), 1u);
    EXPECT_EQ(world[rank].counter("connections"), 1u);
    EXPECT_EQ(world[rank].counter("connections_crossed"), 1u);
    EXPECT_EQ(world[rank].changes[1 - rank], 1);
  }
}

// What may happen to datagrams, often; every pair connects, nothing is lost or comes twice.
class BadDatagrams : public testing::TestWithParam<unsigned> {};

TEST_P(BadDatagrams, do_no_harm) {
  Faults faults;
  faults.datagram_loss = 0.4;
  faults.datagram_duplication = 0.3;
  faults.datagram_reordering = 0.5;
  faults.reordering_ns = 3e6;
  faults.progress_thread_jitter_ns = 1e5;
  constexpr Rank size = 4;
  World world(size, small_settings(), {}, faults, GetParam());
  world.start();
  std::vector<Stream> streams;
  for (Rank from = 0; from < size; ++from) {
    for (Rank to = 0; to < size; ++to) {
      if (from != to) streams.emplace_back(world, from, to, 10);
    }
  }
  ASSERT_TRUE(world.until(
      [&] {
        bool all = true;
        for (Stream& stream : streams)
          all = stream.push() && stream.arrived() && all;
        return all;
      },
      2000000));
  for (const Stream& stream : streams)
    stream.check();
  std::uint64_t resent = 0;
  for (Rank rank = 0; rank < size; ++rank) {
    EXPECT_EQ(world[rank].transport->connections(), size - 1);
    EXPECT_EQ(world[rank].counter("connections"), size - 1);
    EXPECT_EQ(world[rank].counter("packets_rejected"), 0u);
    resent += world[rank].counter("packets_resent");
  }
  EXPECT_GT(resent, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadDatagrams, testing::Range(1u, 31u));

TEST(Connect, a_rank_talks_to_itself_without_a_connection) {
  World world(2);
  world.start();
  Stream stream(world, 0, 0, 10);
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }, 100));
  stream.check();
  EXPECT_EQ(world[0].transport->connections(), 0u);
}

TEST(Connect, packets_of_another_job_are_not_answered) {
  World world(2);
  world[1].its_secret = {9, 9, 9};
  // The same queue key, which is all that the network compares.
  world[0].its_secret = {9, 9, 9, 0, 1};
  world.start();
  Stream stream(world, 0, 1, 1);
  world.until([&] { return stream.push(); }, 5000);
  EXPECT_FALSE(stream.push());
  EXPECT_EQ(world[1].transport->connections(), 0u);
  EXPECT_GT(world[1].counter("packets_rejected"), 0u);
}

TEST(Connect, a_peer_that_has_ended_counts_as_failed) {
  World world(2);
  world.start();
  world[1].transport.reset();
  EXPECT_FALSE(world[0].up(1));
  world[0].device.compute(sim::from_seconds(21));
  ASSERT_TRUE(world.until([&] { return world[0].changes[1] != 0; }, 20));
  EXPECT_EQ(world[0].states[1], engine::PeerState::failed);
  EXPECT_EQ(world[0].transport->connections(), 0u);
  ASSERT_EQ(world[0].transport->fallbacks().size(), 1u);
  EXPECT_NE(world[0].transport->fallbacks()[0].find("rank 1 has not answered"), std::string::npos);
  EXPECT_EQ(world[0].transport->why_failed(world[0].link(1)).find("rank 1 on host "), 0u);
  EXPECT_NE(world[0]
                .transport->why_failed(world[0].link(1))
                .find("cannot be reached: rank 1 has not answered for "),
            std::string::npos);
}

TEST(Connect, ranks_that_receive_in_different_ways_are_told) {
  World world(2);
  world[1].settings.rdma_receive = ReceiveMode::credit;
  world.start();
  Stream stream(world, 0, 1, 1);
  stream.push();
  ASSERT_TRUE(world.until([&] { return world[0].changes[1] != 0; }));
  EXPECT_EQ(world[0].states[1], engine::PeerState::failed);
  EXPECT_NE(world[0].transport->fallbacks()[0].find("MACADAM_RDMA_RECEIVE"), std::string::npos);
}

// What a peer has published reaches others late: its requests are as good as lost until then.
TEST(Connect, a_request_of_a_peer_whose_address_has_not_come_is_answered_later) {
  World world(2);
  world.start();
  world[0].unknown = 1;
  Stream stream(world, 1, 0, 3);
  EXPECT_FALSE(world.until([&] { return stream.push() && stream.arrived(); }, 3000));
  EXPECT_EQ(world[0].transport->connections(), 0u);
  world[0].unknown.reset();
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }, 100000));
  stream.check();
}

// An adapter that has gone, or a port that stays down: nobody may wait for it for ever.
TEST(Lost, an_adapter_takes_all_connections_with_it) {
  World world(4);
  world.start();
  Stream connected(world, 0, 1, 3);
  ASSERT_TRUE(world.until([&] { return connected.push() && connected.arrived(); }));
  ASSERT_TRUE(world[0].transport != nullptr);
  world[0].link(2); // on its way
  world[0].device.lose("the port sim0:1 has been down for 5 s");
  ASSERT_TRUE(world.until([&] {
    return world[0].states[1] == engine::PeerState::failed &&
           world[0].states[2] == engine::PeerState::failed;
  }));
  EXPECT_FALSE(world[0].up(3)); // never asked for before
  ASSERT_TRUE(world.until([&] { return world[0].states[3] == engine::PeerState::failed; }));
  const std::vector<std::string> told = world[0].transport->fallbacks();
  EXPECT_NE(std::ranges::find(told,
                              "rdma: the connection to rank 3 has failed: the port sim0:1 has "
                              "been down for 5 s"),
            told.end());
  // The others tell each other, and refuse.
  ASSERT_TRUE(world.until([&] { return world[1].counter("broken") == 1; }));
}

bool connected_at_start(World& world) {
  return world.until([&] {
    bool all = true;
    for (auto& process : world.processes)
      all = process->transport->connect_at_start() && all;
    return all;
  });
}

// A process whose adapter has no region left.
struct Crowded : World {
  // The user's memory stays registered.
  struct Steady final : mem::InvalidationSource {
    bool watch(const mem::Range&) override { return true; }
    bool take(mem::Range&) override { return false; }
  } steady;
  std::vector<std::byte> memory = std::vector<std::byte>(2 * regions * mem::page);
  std::vector<std::unique_ptr<MemoryRegion>> others;

  static constexpr std::size_t regions = 20;
  static Model model() {
    Model few;
    few.regions = regions;
    return few;
  }
  explicit Crowded(ReceiveMode mode) : World(4, small_settings(mode), model()) {
    processes[0]->invalidation = &steady;
    start();
  }
  sim::SimulatedDevice& device() { return processes[0]->device; }
  // Registered in the course of transfers, and used no more.
  void fill_cache() {
    RdmaTransport& transport = *processes[0]->transport;
    for (std::size_t i = 0; device().regions.count() < regions; ++i)
      transport.release_cached(transport.register_cached(&memory.at(2 * i * mem::page), 1));
  }
  void take_all() {
    while (device().regions.count() < regions)
      others.push_back(device().register_memory(memory.data(), 1, Access::local));
  }
  void expect_passes(Rank from, Rank to) {
    processes[to]->received[from].clear();
    Stream stream(*this, from, to, 3);
    ASSERT_TRUE(until([&] { return stream.push() && stream.arrived(); }, 200000));
    stream.check();
  }
};

TEST(Connect, what_the_cache_keeps_without_use_gives_way) {
  for (const ReceiveMode mode :
       {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring, ReceiveMode::mixed}) {
    Crowded world(mode);
    world.fill_cache();
    world.expect_passes(2, 0);
    world.fill_cache();
    world.expect_passes(0, 1);
    world.fill_cache();
    const std::string text(900, 'x'); // in a message buffer
    ASSERT_TRUE(world.until([&] { return world[0].try_send(1, text) == Posted::done; }));
    world.fill_cache();
    std::uint64_t word = 0;
    world[0].transport->deregister_region(world[0].transport->register_region(&word, sizeof word));
    world.fill_cache();
    void* const allocated = world[0].transport->allocate(128);
    EXPECT_NE(allocated, nullptr);
    world[0].transport->free(allocated);
    EXPECT_EQ(world[0].counter("broken"), 0u);
  }
}

TEST(Connect, without_memory_another_connection_is_closed) {
  Crowded world(ReceiveMode::ring);
  world.expect_passes(0, 1); // from now on it has message buffers
  world.take_all();
  world.expect_passes(0, 2);
  EXPECT_EQ(world[0].counter("connections_closed"), 1u);
  world.expect_passes(1, 0);
  EXPECT_EQ(world[0].counter("broken"), 0u);
}

TEST(Connect, without_memory_and_another_connection_it_fails) {
  Crowded world(ReceiveMode::ring);
  world.take_all();
  world[0].link(1);
  ASSERT_TRUE(world.until([&] { return world[0].states[1] == engine::PeerState::failed; }));
  EXPECT_NE(world[0].transport->fallbacks().back().find("all 20 memory regions are in use"),
            std::string::npos)
      << world[0].transport->fallbacks().back();
}

class AtStart : public testing::TestWithParam<ConnectMode> {};

TEST_P(AtStart, every_pair_is_connected) {
  Settings settings = small_settings();
  settings.rdma_connections = GetParam();
  constexpr Rank size = 9;
  World world(size, settings);
  world.start();
  ASSERT_TRUE(connected_at_start(world));
  world.run(2000);
  std::vector<Stream> streams;
  for (Rank from = 0; from < size; ++from) {
    EXPECT_EQ(world[from].transport->connections(), size - 1);
    EXPECT_EQ(world[from].counter("connections"), size - 1);
    for (Rank to = 0; to < size; ++to)
      streams.emplace_back(world, from, to, 3);
  }
  ASSERT_TRUE(world.until([&] {
    bool all = true;
    for (Stream& stream : streams)
      all = stream.push() && stream.arrived() && all;
    return all;
  }));
  for (const Stream& stream : streams)
    stream.check();
}

// On three nodes of two ranks, another network serves those of a node.
TEST_P(AtStart, only_ranks_that_rdma_serves_are_connected) {
  Settings settings = small_settings();
  settings.rdma_connections = GetParam();
  settings.rdma_queue_pairs = 5; // four connections and the datagrams
  constexpr Rank size = 6;
  World world(size, settings);
  for (auto& process : world.processes)
    process->node_ranks = 2;
  world.start();
  ASSERT_TRUE(connected_at_start(world));
  world.run(2000);
  for (Rank rank = 0; rank < size; ++rank) {
    const RdmaTransport& transport = *world[rank].transport;
    EXPECT_EQ(transport.connections(), 4u);
    EXPECT_EQ(transport.reaches(rank ^ 1), false);
    EXPECT_EQ(transport.reaches((rank + 2) % size), true);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, AtStart, testing::Values(ConnectMode::all, ConnectMode::serial),
                         [](const auto& at) {
                           return at.param == ConnectMode::all ? "all" : "serial";
                         });

TEST(AtStart, too_few_queue_pairs_are_refused_with_the_remedy) {
  Settings settings = small_settings();
  settings.rdma_connections = ConnectMode::all;
  Model model;
  model.queue_pairs = 4;
  World world(5, settings, model);
  try {
    world[0].start();
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("4 connections at start need 5 queue pairs, 4 are there"),
              std::string::npos)
        << error.text;
    EXPECT_NE(error.text.find("on-demand"), std::string::npos);
  }
}

} // namespace
} // namespace macadam::test
