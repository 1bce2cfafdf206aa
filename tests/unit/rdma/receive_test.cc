// SPDX-License-Identifier: BSD-3-Clause
// Bursts at a receiver that does not read: whatever the receive mode, every message arrives once
// and in order.
#include "world.h"

#include "net/rdma/model.h"

namespace macadam::test {
namespace {

const char* name_of(ReceiveMode mode) {
  return mode == ReceiveMode::shared   ? "shared"
         : mode == ReceiveMode::credit ? "credit"
         : mode == ReceiveMode::ring   ? "ring"
                                       : "mixed";
}

class Modes : public testing::TestWithParam<ReceiveMode> {};
INSTANTIATE_TEST_SUITE_P(All, Modes,
                         testing::Values(ReceiveMode::shared, ReceiveMode::credit,
                                         ReceiveMode::ring, ReceiveMode::mixed),
                         [](const auto& at) { return name_of(at.param); });

TEST_P(Modes, a_burst_from_all_sides_arrives_in_order) {
  constexpr Rank size = 5;
  constexpr unsigned count = 400;
  World world(size, small_settings(GetParam()));
  world.start();
  std::vector<Stream> streams;
  for (Rank from = 1; from < size; ++from)
    streams.emplace_back(world, from, 0, count);
  const auto push = [&] {
    bool all = true;
    for (Stream& stream : streams)
      all = stream.push() && all;
    return all;
  };
  world.until(push, 3000, 0); // rank 0 computes: what it has room for is sent, no more
  EXPECT_TRUE(world[0].received.empty());
  ASSERT_TRUE(world.until([&] {
    bool all = push();
    for (const Stream& stream : streams)
      all = all && stream.arrived();
    return all;
  }));
  for (const Stream& stream : streams)
    stream.check();
}

TEST_P(Modes, messages_go_both_ways_for_long) {
  World world(2, small_settings(GetParam()));
  world.start();
  Stream there(world, 0, 1, 3000);
  Stream back(world, 1, 0, 3000);
  ASSERT_TRUE(world.until([&] {
    const bool sent = there.push();
    return back.push() && sent && there.arrived() && back.arrived();
  }));
  there.check();
  back.check();
}

// A header of the length that is remembered travels once, and arrives with every message; others
// between them, and connections that are made anew, do not mix them up.
TEST_P(Modes, a_header_that_repeats_arrives_with_every_message) {
  constexpr unsigned count = 300;
  Settings settings = small_settings(GetParam());
  settings.rdma_queue_pairs = 2; // one connection at a time
  World world(3, settings);
  world.start();
  const auto header = [](Rank to, unsigned n) {
    std::string text = std::to_string(to) + " kind " + std::to_string(n / 7 % 3);
    text.resize(n % 11 == 10 ? 24 : model::repeated_header, '.');
    return text;
  };
  const auto payload = [](unsigned n) { return n % 5 == 4 ? std::string() : message(n); };
  std::array<unsigned, 3> sent = {};
  const auto push = [&](Rank to) {
    if (!world[0].up(to) || sent[to] == count) return sent[to] == count;
    const std::string first = header(to, sent[to]), second = payload(sent[to]);
    if (world[0].transport->send(world[0].link(to), first.data(), first.size(), second.data(),
                                 second.size()) == Posted::done)
      ++sent[to];
    return false;
  };
  ASSERT_TRUE(world.until(
      [&] {
        const bool all = push(1);
        return push(2) && all && world[1].received[0].size() == count &&
               world[2].received[0].size() == count;
      },
      2'000'000));
  for (const Rank to : {1u, 2u})
    for (unsigned n = 0; n < count; ++n)
      ASSERT_EQ(world[to].received[0][n], header(to, n) + payload(n)) << "message " << n;
  EXPECT_GT(world[0].counter("evicted"), 0u);
}

// Answers are sent from inside on_message(), as the engine does.
TEST_P(Modes, a_sink_may_send) {
  World world(2, small_settings(GetParam()));
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1) && world[1].up(0); }));
  unsigned answers = 0;
  world[1].on_receive = [&](Rank) {
    if (world[1].try_send(0, message(answers)) == Posted::done) ++answers;
  };
  Stream there(world, 0, 1, 50);
  ASSERT_TRUE(world.until([&] { return there.push() && there.arrived(); }));
  ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == answers; }));
  EXPECT_GT(answers, 5u);
}

TEST_P(Modes, the_memory_model_is_within_one_percent) {
  for (const Rank size : {2u, 5u, 33u}) {
    Settings settings = small_settings(GetParam());
    World world(size, settings);
    world.start();
    for (Rank peer = 1; peer < size; ++peer)
      ASSERT_TRUE(world.until([&] { return world[0].up(peer); }));
    std::vector<std::string> lowered;
    const model::Shape shape = model::shape_of(settings, world[0].device.limits(), lowered);
    EXPECT_TRUE(lowered.empty());
    const auto held = static_cast<double>(world[0].transport->memory_bytes());
    EXPECT_NEAR(static_cast<double>(model::bytes(shape, {.connections = size - 1})), held,
                held / 100)
        << size;
  }
}

TEST(Shared, the_progress_thread_refills_while_the_receiver_computes) {
  Settings settings = small_settings();
  settings.rdma_buffers = 768;
  settings.rdma_shared = 128;
  // Half a microsecond a message, twelve for the progress thread to wake up, and twice as many
  // again, as refills beyond the first register memory.
  settings.rdma_watermark = 3 * model::watermark(1e9, 500, 12e-6);
  World world(2, settings);
  world.start();
  Stream stream(world, 0, 1, 500);
  ASSERT_TRUE(world.until([&] { return stream.push(); }, 20000, 1));
  world.until([] { return false; }, 100, 1);
  EXPECT_GT(world[1].counter("limit_events"), 2u);
  EXPECT_EQ(world.fabric.counters.receiver_not_ready, 0u);
  const std::size_t before = world[1].transport->memory_bytes();
  ASSERT_TRUE(world.until([&] { return stream.arrived(); }));
  stream.check();
  EXPECT_GT(world[1].counter("returned"), 60u);
  // After the burst the receives in the queue are as many as before it.
  const std::uint64_t events = world[1].counter("limit_events");
  Stream again(world, 0, 1, 10);
  world[1].received.clear();
  ASSERT_TRUE(world.until([&] { return again.push() && again.arrived(); }));
  EXPECT_EQ(world[1].counter("limit_events"), events);
  EXPECT_EQ(world[1].transport->memory_bytes(), before);
}

TEST(Shared, without_a_watermark_the_network_refuses_and_nothing_is_lost) {
  Settings settings = small_settings();
  settings.rdma_watermark = 0;
  World world(2, settings);
  world.start();
  Stream stream(world, 0, 1, 150);
  world.until([&] { return stream.push(); }, 5000, 1);
  EXPECT_GT(world.fabric.counters.receiver_not_ready, 0u);
  EXPECT_EQ(world[1].counter("limit_events"), 0u);
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }));
  stream.check();
}

// Receives that were read and wait to be posted again are still receives: a progress thread that
// comes late must not put the pool's last buffers in their place. A rank whose messages have all
// come would never send again (seed 968 of tests/torture).
TEST(Shared, a_late_progress_thread_leaves_buffers_to_sends) {
  Settings settings = small_settings();
  settings.rdma_buffers = 24; // 21 of them for receives, posted again by eights
  settings.rdma_watermark = 6;
  Model model;
  model.progress_thread_ns = 1e6;
  World world(2, settings, model);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1) && world[1].up(0); }));
  const auto receive = [&](unsigned count) {
    for (unsigned n = 0; n < count; ++n)
      ASSERT_EQ(world[0].try_send(1, "short"), Posted::done);
    world.until([] { return false; }, 100, 1); // it computes
    world.run(20);
  };
  world[1].received.clear();
  receive(16); // fewer than six are left; they are posted again before the progress thread wakes up
  receive(7);  // seven wait for one more
  ASSERT_EQ(world[1].received[0].size(), 23u);
  ASSERT_EQ(world[1].counter("limit_events"), 0u);
  ASSERT_TRUE(world.until([&] { return world[1].counter("limit_events") == 1; }));
  EXPECT_EQ(world[1].try_send(0, std::string(1000, 'x')), Posted::done);
}

// Few of the copied sends ask for their completion; the others keep their buffers, of a bounded
// number, until drain() asks.
TEST(Shared, copied_sends_keep_a_few_buffers) {
  World world(3);
  world.start();
  const std::string text(1000, 'x');
  for (unsigned n = 0; n < 50; ++n) {
    const Rank to = 1 + n % 2;
    ASSERT_TRUE(world.until([&] { return world[0].try_send(to, text) == Posted::done; })) << n;
    world.run(10);
    EXPECT_LE(world[0].transport->in_use().buffers, model::unsignalled_buffers);
  }
  EXPECT_GT(world[0].transport->in_use().buffers, 0u);
  ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }));
  EXPECT_EQ(world[0].transport->in_use().buffers, 0u);
}

// ... or until a send finds no other.
TEST(Shared, a_send_that_finds_the_pool_empty_gets_the_buffers_that_others_keep) {
  Settings settings = small_settings();
  settings.rdma_buffers = 8; // 7 of them for receives
  settings.rdma_shared = 7;
  World world(3, settings);
  world.start();
  const std::string text(1000, 'x');
  for (unsigned n = 0; n < 20; ++n) {
    const Rank to = 1 + n % 2;
    ASSERT_TRUE(world.until([&] { return world[0].try_send(to, text) == Posted::done; })) << n;
  }
  ASSERT_TRUE(world.until(
      [&] { return world[1].received[0].size() == 10 && world[2].received[0].size() == 10; }));
}

// The pool is used up too: the network waits until the receiver reads.
TEST(Shared, a_burst_beyond_the_pool_waits) {
  World world(3);
  world.start();
  Stream one(world, 0, 2, 300);
  Stream two(world, 1, 2, 300);
  world.until([&] { return one.push() && two.push(); }, 30000, 2);
  EXPECT_GT(world.fabric.counters.receiver_not_ready, 0u);
  ASSERT_TRUE(world.until([&] {
    const bool sent = one.push();
    return two.push() && sent && one.arrived() && two.arrived();
  }));
  one.check();
  two.check();
  EXPECT_EQ(world[2].counter("broken"), 0u);
}

TEST(Shared, receives_that_never_come_break_the_connection_if_retries_are_bounded) {
  Settings settings = small_settings();
  settings.rdma_watermark = 0;
  settings.rdma_rnr_retries = 3;
  World world(2, settings);
  world.start();
  Stream stream(world, 0, 1, 100);
  ASSERT_TRUE(world.until(
      [&] {
        stream.push();
        return world[0].states[1] == engine::PeerState::failed;
      },
      100000, 1));
  EXPECT_EQ(world[0].counter("no_receiver"), 1u);
  world.run(10);
  EXPECT_EQ(world[0].transport->connections(), 0u);
}

TEST(Shared, a_device_without_shared_queues_is_refused_with_the_remedy) {
  Model model;
  model.shared_depth = 0;
  World world(1, small_settings(), model);
  try {
    world.start();
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("MACADAM_RDMA_RECEIVE=credit"), std::string::npos) << error.text;
  }
}

// Where a device does not promise the order on which polling builds, completions tell, and a report
// says so.
TEST(Ring, is_polled_only_where_bytes_and_writes_are_in_order) {
  for (const bool bytes : {true, false}) {
    for (const bool writes : {true, false}) {
      Model model;
      model.orders_bytes = bytes;
      model.orders_writes = writes;
      Faults faults;
      faults.split_writes = true;
      World world(2, small_settings(ReceiveMode::ring), model, faults);
      world.start();
      Stream there(world, 0, 1, 300);
      Stream back(world, 1, 0, 300);
      ASSERT_TRUE(world.until([&] {
        const bool sent = there.push();
        return back.push() && sent && there.arrived() && back.arrived();
      }));
      there.check();
      back.check();
      const bool polled = bytes && writes;
      EXPECT_EQ(world[0].transport->sleeps(), !polled);
      ASSERT_EQ(world[0].transport->fallbacks().size(), polled ? 0u : 1u);
      if (!polled) {
        EXPECT_NE(world[0].transport->fallbacks()[0].find("rings are not polled"),
                  std::string::npos);
      }
    }
  }
}

TEST(Shape, what_the_device_does_not_allow_is_lowered_and_told) {
  Model model;
  model.shared_depth = 16;
  model.send_depth = 64;
  Settings settings = small_settings();
  settings.rdma_send_depth = 100;
  World world(2, settings, model);
  world.start();
  Stream stream(world, 0, 1, 100);
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }));
  stream.check();
  const std::vector<std::string> told = world[0].transport->fallbacks();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], "rdma: MACADAM_RDMA_SEND_DEPTH is 100, the adapter allows 64");
  EXPECT_NE(told[1].find("MACADAM_RDMA_SHARED is 32"), std::string::npos) << told[1];
}

// HYBRID's copy against the wait for a receiver, which takes a round trip and the transfer.
TEST(Shape, hybrid_goes_as_far_as_its_copy_costs_little) {
  Settings settings;
  DeviceLimits limits;
  const auto longest = [&] { return model::hybrid_bytes(settings, limits); };
  limits.bytes_per_s = 1e9;
  limits.copy_bytes_per_s = 1e9;
  EXPECT_EQ(longest(), model::most_hybrid); // the copy takes no longer than the transfer
  limits.bytes_per_s = 40e9;
  limits.copy_bytes_per_s = 10e9;
  limits.round_trip_s = 1e-6;
  EXPECT_NEAR(static_cast<double>(longest()), 40e3, 1); // 4 us, and 2 * (1 us + 1 us)
  limits.round_trip_s = 2e-6;
  EXPECT_NEAR(static_cast<double>(longest()), 80e3, 1);
  settings.rdma_hybrid = 12345;
  EXPECT_EQ(longest(), 12345u);
}

// One more copy of a message against a request for it.
TEST(Shape, messages_travel_together_if_their_copy_costs_little) {
  DeviceLimits limits;
  limits.copy_bytes_per_s = 1e9;
  limits.post_s = 0.5e-6;
  EXPECT_NEAR(static_cast<double>(model::bundled_bytes(8192, limits)), 250, 1);
  EXPECT_EQ(model::bundled_bytes(64, limits), 64u); // EAGER goes no further
  limits.post_s = 50e-6;
  EXPECT_LE(model::bundled_bytes(8192, limits), 1024u);
}

TEST(Shape, a_device_whose_requests_take_no_whole_message_is_refused) {
  Model model;
  model.segments = 2;
  World world(1, small_settings(), model);
  try {
    world.start();
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("2 segments at most, needed 3"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find("MACADAM_RDMA_DEVICE"), std::string::npos) << error.text;
  }
}

TEST(Shape, what_no_device_allows_is_refused) {
  Settings settings = small_settings();
  settings.rdma_window = 1;
  World world(1, settings);
  try {
    world.start();
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("MACADAM_RDMA_WINDOW is 1, needed 2 to"), std::string::npos)
        << error.text;
  }
}

class Windowed : public testing::TestWithParam<ReceiveMode> {};
INSTANTIATE_TEST_SUITE_P(All, Windowed, testing::Values(ReceiveMode::credit, ReceiveMode::ring),
                         [](const auto& at) { return name_of(at.param); });

TEST_P(Windowed, a_sender_stops_at_its_window_and_the_network_refuses_nothing) {
  World world(2, small_settings(GetParam()));
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  int sent = 0;
  world.until(
      [&] {
        while (world[0].try_send(1, "x") == Posted::done)
          ++sent;
        return false;
      },
      1000, 1);
  EXPECT_EQ(sent, 8);
  // One way only: the receiver has no message to put credits on.
  Stream stream(world, 0, 1, 500);
  world[1].received.clear();
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 8; }));
  world[1].received.clear();
  ASSERT_TRUE(world.until([&] { return stream.push() && stream.arrived(); }));
  stream.check();
  EXPECT_GT(world[1].counter("credit_notes"), 500u / 8 - 1);
  EXPECT_EQ(world.fabric.counters.receiver_not_ready, 0u);
}

TEST_P(Windowed, credits_travel_with_messages) {
  World world(2, small_settings(GetParam()));
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1) && world[1].up(0); }));
  for (unsigned n = 0; n < 200; ++n) { // ping-pong
    ASSERT_EQ(world[0].try_send(1, message(n)), Posted::done);
    ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == n + 1; }));
    ASSERT_EQ(world[1].try_send(0, message(n)), Posted::done);
    ASSERT_TRUE(world.until([&] { return world[0].received[1].size() == n + 1; }));
  }
  EXPECT_EQ(world[0].counter("credit_notes") + world[1].counter("credit_notes"), 0u);
}

} // namespace
} // namespace macadam::test
