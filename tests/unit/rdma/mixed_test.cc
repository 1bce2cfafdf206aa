// SPDX-License-Identifier: BSD-3-Clause
// A shared queue with rings for the peers that talk most: who gets one, what goes there, in which
// order all arrives, and when it goes again.
#include "world.h"

#include "net/rdma/model.h"

namespace macadam::test {
namespace {

constexpr unsigned talk = 16; // messages for which a peer gets a ring: two windows of 8

// As many short messages as are needed for a ring, and some more.
void let_talk(World& world, Rank from, Rank to, unsigned count = 3 * talk) {
  const std::size_t before = world[to].received[from].size();
  for (unsigned n = 0; n < count; ++n) {
    ASSERT_TRUE(world.until([&] { return world[from].try_send(to, "short") == Posted::done; }));
    ASSERT_TRUE(world.until([&] { return world[to].received[from].size() == before + n + 1; }));
  }
}

class Mixed : public testing::Test {
 public:
  World world{2, small_settings(ReceiveMode::mixed)};
};

TEST_F(Mixed, who_talks_much_gets_a_ring_and_others_get_none) {
  world.start();
  let_talk(world, 0, 1, talk - 1);
  EXPECT_EQ(world[1].counter("rings_offered"), 0u);
  let_talk(world, 0, 1);
  EXPECT_EQ(world[1].counter("rings_offered"), 1u);
  EXPECT_GT(world[1].counter("read_in_rings"), talk);
  EXPECT_EQ(world[0].counter("rings_offered"), 0u); // it gets nothing
}

// Short ones stand in the ring, long ones come through the queue; both ways at once.
TEST_F(Mixed, short_and_long_ones_keep_their_order) {
  world.start();
  constexpr unsigned count = 2000;
  const auto text = [](unsigned n) {
    return message(n, n % 3 == 0 ? 1000 : 50); // the longest fit no slot
  };
  std::array<unsigned, 2> sent = {};
  const auto push = [&](Rank from) {
    while (sent[from] < count && world[from].try_send(1 - from, text(sent[from])) == Posted::done)
      ++sent[from];
    return sent[from] == count && world[1 - from].received[from].size() == count;
  };
  ASSERT_TRUE(world.until([&] {
    const bool there = push(0);
    return push(1) && there;
  }));
  for (const Rank to : {0u, 1u}) {
    for (unsigned n = 0; n < count; ++n)
      ASSERT_EQ(world[to].received[1 - to][n], text(n)) << n;
    EXPECT_GT(world[to].counter("read_in_rings"), count / 10);
    EXPECT_LT(world[to].counter("read_in_rings"), count);
  }
}

// A sender whose ring is full is not held up: the queue takes the rest, as without rings.
TEST_F(Mixed, a_burst_goes_through_the_queue) {
  world.start();
  let_talk(world, 0, 1);
  world[1].received.clear();
  Stream burst(world, 0, 1, 60); // the ring has 8 slots
  ASSERT_TRUE(world.until([&] { return burst.push(); }, 20000, 1)) << "rank 1 computes";
  EXPECT_TRUE(world[1].received.empty());
  ASSERT_TRUE(world.until([&] { return burst.arrived(); }));
  burst.check();
}

// What is written ends no sleep, so there is no ring then; its memory is given back.
TEST_F(Mixed, a_process_that_sleeps_has_no_rings) {
  world.start();
  let_talk(world, 0, 1, talk - 1);
  const std::size_t before = world[1].transport->memory_bytes();
  let_talk(world, 0, 1);
  EXPECT_EQ(world[1].transport->memory_bytes(), before + model::ring_bytes(8));
  EXPECT_LT(world[1].transport->longest_sleep_us(), 10000u);
  world[1].transport->arm();
  ASSERT_TRUE(world.until([&] { return world[1].transport->longest_sleep_us() == UINT_MAX; }));
  EXPECT_EQ(world[1].counter("rings_withdrawn"), 1u);
  EXPECT_EQ(world[1].transport->memory_bytes(), before);
  // As much was read there as it took to get it, so it takes no more for the next. In that nothing
  // is read.
  let_talk(world, 0, 1, talk);
  ASSERT_TRUE(world.until([&] { return world[1].counter("rings_offered") == 2; }));
  world.run(20);
  world[1].transport->arm();
  ASSERT_TRUE(world.until([&] { return world[1].transport->longest_sleep_us() == UINT_MAX; }));
  const std::uint64_t read = world[1].counter("read_in_rings");
  let_talk(world, 0, 1, 2 * talk - 1);
  EXPECT_EQ(world[1].counter("rings_offered"), 2u);
  EXPECT_EQ(world[1].counter("read_in_rings"), read);
  let_talk(world, 0, 1);
  EXPECT_EQ(world[1].counter("rings_offered"), 3u);
  EXPECT_GT(world[1].counter("read_in_rings"), read);
}

// It says so in its last message: its place is another's, and it is sent nothing more.
TEST_F(Mixed, the_ring_of_a_peer_that_leaves_is_given_back) {
  world.start();
  let_talk(world, 0, 1, talk - 1);
  const std::size_t before = world[1].transport->memory_bytes();
  let_talk(world, 0, 1);
  let_talk(world, 1, 0);
  ASSERT_TRUE(world.until([&] { return world[0].transport->leave(); }));
  world[0].transport.reset();
  world.run(200);
  world[1].transport->arm();
  world.run(5000);
  EXPECT_EQ(world[1].transport->memory_bytes(), before);
  EXPECT_EQ(world[1].transport->longest_sleep_us(), UINT_MAX);
  EXPECT_EQ(world[1].counter("broken"), 0u);
}

// The sender writes on for a while as it has not looked: all of that is read, in order.
TEST_F(Mixed, what_is_written_to_a_withdrawn_ring_is_read) {
  world.start();
  let_talk(world, 0, 1);
  world[1].received.clear();
  world[1].transport->arm();
  world.until([] { return false; }, 20, 0); // rank 0 computes: it does not know
  EXPECT_EQ(world[1].counter("rings_withdrawn"), 1u);
  const std::uint64_t read = world[1].counter("read_in_rings");
  Stream stream(world, 0, 1, 5);
  ASSERT_TRUE(stream.push());
  ASSERT_TRUE(world.until([&] { return stream.arrived(); }, 20000, 0));
  EXPECT_GT(world[1].counter("read_in_rings"), read);
  Stream more(world, 0, 1, 100);
  world[1].received.clear();
  ASSERT_TRUE(world.until([&] { return more.push() && more.arrived(); }));
  more.check();
}

TEST_F(Mixed, a_ring_that_nobody_uses_is_for_another_peer) {
  constexpr Rank peers = model::most_rings + 1;
  World many(peers + 1, small_settings(ReceiveMode::mixed));
  many.start();
  for (Rank peer = 1; peer < peers; ++peer)
    let_talk(many, peer, 0);
  EXPECT_EQ(many[0].counter("rings_offered"), model::most_rings);
  let_talk(many, peers, 0, 1);
  const std::size_t full = many[0].transport->memory_bytes();
  let_talk(many, peers, 0, 3 * talk - 1); // others may have been written to since the last wish
  EXPECT_EQ(many[0].counter("rings_withdrawn"), 1u);
  let_talk(many, peers, 0);
  EXPECT_EQ(many[0].counter("rings_offered"), model::most_rings + 1);
  EXPECT_NEAR(static_cast<double>(many[0].transport->memory_bytes()), static_cast<double>(full),
              1024);
}

TEST_F(Mixed, where_places_are_in_no_order_there_are_no_rings) {
  for (int broken = 0; broken < 3; ++broken) {
    Model model;
    model.orders_bytes = broken != 0;
    model.orders_writes = broken != 1;
    model.orders_arrivals = broken != 2;
    Faults faults;
    faults.split_writes = true;
    World unordered(2, small_settings(ReceiveMode::mixed), model, faults);
    unordered.start();
    Stream stream(unordered, 0, 1, 200);
    ASSERT_TRUE(unordered.until([&] { return stream.push() && stream.arrived(); }));
    stream.check();
    EXPECT_EQ(unordered[1].counter("rings_offered"), 0u);
    ASSERT_EQ(unordered[1].transport->fallbacks().size(), 1u);
    EXPECT_NE(unordered[1].transport->fallbacks()[0].find("no peer gets a ring"),
              std::string::npos);
  }
}

TEST_F(Mixed, the_memory_model_counts_rings) {
  world.start();
  let_talk(world, 0, 1);
  std::vector<std::string> lowered;
  const model::Shape shape =
      model::shape_of(small_settings(ReceiveMode::mixed), world[1].device.limits(), lowered);
  const auto held = static_cast<double>(world[1].transport->memory_bytes());
  EXPECT_NEAR(static_cast<double>(model::bytes(shape, {.connections = 1, .rings = 1})), held,
              held / 100);
}

} // namespace
} // namespace macadam::test
