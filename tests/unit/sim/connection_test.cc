// SPDX-License-Identifier: BSD-3-Clause
// The rules of reliable connections: what each operation does, in which order, and what is refused.
#include "devices.h"

namespace macadam::test {
namespace {

SendWork remote(Pair& pair, Operation operation, std::uint64_t id, std::span<const Segment> from,
                std::size_t offset) {
  SendWork result = work(operation, id, from);
  result.remote_address = pair.b.address(offset);
  result.remote_key = static_cast<std::uint32_t>(pair.b.region->remote_key);
  return result;
}

TEST(Connection, a_send_fills_the_oldest_receive) {
  Pair pair;
  pair.connect();
  pair.a.put(0, "hello world");
  ASSERT_TRUE(pair.post_receive(7, pair.b.at(100, 32)));
  ASSERT_TRUE(pair.post_receive(8, pair.b.at(200, 32)));
  const std::array segments{pair.a.at(0, 6), pair.a.at(6, 5)}; // gathered
  SendWork send = work(Operation::send_immediate, 1, segments);
  send.immediate = 99;
  EXPECT_EQ(pair.post(send), 1u);
  pair.run();
  const auto received = Node::poll(*pair.b.receives);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].id, 7u);
  EXPECT_EQ(received[0].bytes, 11u);
  EXPECT_EQ(received[0].immediate, 99u);
  EXPECT_EQ(received[0].queue_pair, pair.qb->number());
  EXPECT_EQ(pair.b.get(100, 11), "hello world");
  const auto sent = Node::poll(*pair.a.sends);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].id, 1u);
  EXPECT_EQ(sent[0].status, WorkStatus::ok);
}

TEST(Connection, writes_and_reads_move_memory_and_tell_the_target_nothing) {
  Pair pair;
  pair.connect();
  pair.a.put(0, "written");
  pair.b.put(300, "to be read");
  const std::array from{pair.a.at(0, 7)};
  const std::array to{pair.a.at(50, 4), pair.a.at(80, 6)}; // scattered
  pair.post(remote(pair, Operation::write, 1, from, 100));
  pair.post(remote(pair, Operation::read, 2, to, 300));
  pair.run();
  EXPECT_EQ(pair.b.get(100, 7), "written");
  EXPECT_EQ(pair.a.get(50, 4), "to b");
  EXPECT_EQ(pair.a.get(80, 6), "e read");
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 2u);
  EXPECT_TRUE(Node::poll(*pair.b.receives).empty());
}

TEST(Connection, a_write_with_immediate_consumes_a_receive_after_its_data_are_there) {
  Pair pair;
  pair.connect();
  pair.a.put(0, "data");
  ASSERT_TRUE(pair.post_receive(3, {}));
  const std::array from{pair.a.at(0, 4)};
  SendWork write = remote(pair, Operation::write_immediate, 1, from, 100);
  write.immediate = 5;
  pair.post(write);
  pair.run();
  const auto received = Node::poll(*pair.b.receives);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].immediate, 5u);
  EXPECT_EQ(received[0].bytes, 4u);
  EXPECT_EQ(pair.b.get(100, 4), "data");
}

TEST(Connection, atomics_return_the_old_value) {
  Pair pair;
  pair.connect();
  std::uint64_t* counter = reinterpret_cast<std::uint64_t*>(pair.b.memory.data() + 64);
  *counter = 40;
  const std::array first{pair.a.at(0, 8)}, second{pair.a.at(8, 8)}, third{pair.a.at(16, 8)};
  SendWork add = remote(pair, Operation::fetch_and_add, 1, first, 64);
  add.compare_or_add = 2;
  SendWork swap = remote(pair, Operation::compare_and_swap, 2, second, 64);
  swap.compare_or_add = 42;
  swap.swap = 7;
  SendWork no_swap = remote(pair, Operation::compare_and_swap, 3, third, 64);
  no_swap.compare_or_add = 42;
  no_swap.swap = 8;
  const std::array all{add, swap, no_swap};
  EXPECT_EQ(pair.qa->post(all), 3u);
  pair.run();
  std::array<std::uint64_t, 3> old{};
  std::memcpy(old.data(), pair.a.memory.data(), 24);
  EXPECT_EQ(old, (std::array<std::uint64_t, 3>{40, 42, 7}));
  EXPECT_EQ(*counter, 7u);
}

TEST(Connection, inline_data_are_the_users_again_at_once) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, pair.b.at(0, 64)));
  char text[] = "inline"; // not registered
  const std::array from{Segment{text, 6, 0}};
  SendWork send = work(Operation::send, 1, from);
  send.inlined = true;
  pair.post(send);
  std::strcpy(text, "xxxxxx");
  pair.run();
  EXPECT_EQ(pair.b.get(0, 6), "inline");
}

// What is sent later arrives later, on a network whose jitter would have it otherwise.
TEST(Connection, everything_arrives_in_order_despite_jitter) {
  Faults faults;
  faults.jitter = 20;
  Pair pair({}, faults);
  pair.connect();
  std::vector<std::uint64_t> order;
  std::uint32_t next = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(pair.post_receive(0, {}));
    for (int i = 0; i < 5; ++i) {
      SendWork send = work(Operation::send_immediate, next, {});
      send.immediate = next++;
      ASSERT_EQ(pair.post(send), 1u);
    }
    pair.run();
    for (const Completion& each : Node::poll(*pair.b.receives))
      order.push_back(each.immediate);
    std::uint64_t sent = 5u * static_cast<std::uint64_t>(round);
    for (const Completion& each : Node::poll(*pair.a.sends))
      EXPECT_EQ(each.id, sent++);
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Connection, completions_wait_for_the_reads_before_them) {
  Pair pair;
  pair.connect();
  const std::array big{pair.a.at(0, 60000)}, small{pair.a.at(60000, 8)};
  pair.post(remote(pair, Operation::read, 1, big, 0));
  pair.post(remote(pair, Operation::write, 2, small, 100));
  pair.run();
  const auto done = Node::poll(*pair.a.sends);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].id, 1u);
  EXPECT_EQ(done[1].id, 2u);
}

TEST(Connection, no_more_reads_under_way_than_the_device_has) {
  Model model;
  model.outstanding_reads = 2;
  model.latency_ns = 10000;
  Pair pair(model);
  pair.connect();
  const std::array to{pair.a.at(0, 8)};
  for (std::uint64_t i = 0; i < 6; ++i)
    pair.post(remote(pair, Operation::read, i, to, 0));
  const sim::Time start = pair.a.processor.now();
  // A round trip of 20 us for every two reads.
  pair.scheduler.run_until(start + 45 * sim::microsecond);
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 4u);
  pair.scheduler.run_until(start + 65 * sim::microsecond);
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 2u);
}

TEST(Connection, a_full_send_queue_takes_no_more_until_completions_are_polled) {
  Pair pair;
  pair.connect();
  std::vector<SendWork> many(20, work(Operation::write, 1, {}));
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i].signalled = i == 15;
  EXPECT_EQ(pair.qa->post(many), 16u);
  EXPECT_EQ(pair.qa->post(many), 0u);
  pair.run();
  EXPECT_EQ(pair.qa->post(many), 0u); // done, but nobody has looked
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 1u);
  EXPECT_EQ(pair.qa->post(many), 16u); // the signalled one released those before it
}

// A process that posts faster than the adapter sends must not make events without end.
TEST(Connection, a_write_takes_a_handful_of_events) {
  Model model;
  model.post_ns = 10000; // each request is ready long after the one before it was sent
  Pair pair(model);
  pair.connect();
  const std::uint64_t before = pair.scheduler.events();
  for (std::uint64_t i = 0; i < 16; ++i)
    pair.post(work(Operation::write, i, {}));
  pair.run();
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 16u);
  EXPECT_LE(pair.scheduler.events() - before, 16u * 5);
}

TEST(Connection, receives_are_taken_all_or_none) {
  Pair pair;
  pair.connect();
  const std::vector<ReceiveWork> ten(10);
  EXPECT_TRUE(pair.qb->post_receive(ten));
  EXPECT_FALSE(pair.qb->post_receive(ten)); // of 16
  EXPECT_TRUE(pair.qb->post_receive(std::span(ten).first(6)));
}

// ------------------------------------------------------------------ refusals

class RemoteAccess : public testing::TestWithParam<Operation> {};

TEST_P(RemoteAccess, outside_of_the_region_or_with_a_key_given_back_is_refused) {
  for (const bool given_back : {false, true}) {
    Pair pair;
    pair.connect();
    ASSERT_TRUE(pair.post_receive(1, pair.b.at(0, 64)));
    const std::array from{pair.a.at(0, 8)};
    SendWork bad = remote(pair, GetParam(), 1, from, given_back ? 64 : pair.b.memory.size() - 4);
    const std::array all{bad, remote(pair, Operation::write, 2, from, 64)};
    if (given_back) pair.b.region.reset();
    const auto before = pair.b.memory;
    EXPECT_EQ(pair.qa->post(all), 2u);
    pair.run();
    const auto done = Node::poll(*pair.a.sends);
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].status, WorkStatus::refused);
    EXPECT_EQ(done[1].status, WorkStatus::flushed);
    EXPECT_EQ(pair.b.memory, before);
    // The other end is broken too: its receive comes back.
    const auto flushed = Node::poll(*pair.b.receives);
    ASSERT_EQ(flushed.size(), 1u);
    EXPECT_EQ(flushed[0].status, WorkStatus::flushed);
    EXPECT_EQ(pair.fabric.counters.refused, 1u);
  }
}
INSTANTIATE_TEST_SUITE_P(Operations, RemoteAccess,
                         testing::Values(Operation::write, Operation::write_immediate,
                                         Operation::read, Operation::fetch_and_add));

TEST(Connection, memory_registered_for_local_use_only_is_closed_to_others) {
  Pair pair;
  pair.connect();
  pair.b.region.reset();
  pair.b.region = pair.b.device.register_memory(pair.b.memory.data(), 100, Access::local);
  EXPECT_EQ(pair.b.region->remote_key, 0u);
  const std::array from{pair.a.at(0, 8)};
  SendWork write = work(Operation::write, 1, from);
  write.remote_address = pair.b.address(0);
  write.remote_key = pair.b.region->local_key;
  pair.post(write);
  pair.run();
  ASSERT_EQ(Node::poll(*pair.a.sends).at(0).status, WorkStatus::refused);
}

TEST(Connection, a_read_whose_target_is_given_back_under_way_is_refused) {
  Model model;
  model.latency_ns = 10000;
  Pair pair(model);
  pair.connect();
  const std::array to{pair.a.at(0, 8)};
  pair.post(remote(pair, Operation::read, 1, to, 0));
  pair.scheduler.run_until(pair.a.processor.now() + 15 * sim::microsecond); // it is answered now
  pair.b.region.reset();
  pair.run();
  ASSERT_EQ(Node::poll(*pair.a.sends).at(0).status, WorkStatus::refused);
}

TEST(Connection, a_message_longer_than_its_receive_breaks_the_connection) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, pair.b.at(0, 4)));
  const std::array from{pair.a.at(0, 8)};
  pair.post(work(Operation::send, 1, from));
  pair.run();
  ASSERT_EQ(Node::poll(*pair.a.sends).at(0).status, WorkStatus::refused);
}

TEST(Connection, what_may_not_be_posted_is_refused_by_name) {
  Pair pair;
  pair.connect();
  const auto text = [&](SendWork bad) { return error_of([&] { pair.post(bad); }); };
  const std::array unregistered{Segment{pair.a.memory.data(), 8, 4711}};
  EXPECT_NE(text(work(Operation::send, 1, unregistered)).find("does not open"), std::string::npos);
  const std::array outside{pair.a.at(pair.a.memory.size() - 4, 8)};
  EXPECT_NE(text(work(Operation::send, 1, outside)).find("does not open"), std::string::npos);
  const std::array long_one{pair.a.at(0, 65)};
  SendWork too_long = work(Operation::send, 1, long_one);
  too_long.inlined = true;
  EXPECT_NE(text(too_long).find("65 bytes inline, the queue pair takes 64"), std::string::npos);
  const std::vector<Segment> five(5, pair.a.at(0, 1));
  EXPECT_NE(text(work(Operation::send, 1, five)).find("5 segments, the device takes 4"),
            std::string::npos);
  const std::array four{pair.a.at(0, 4)};
  EXPECT_NE(text(work(Operation::fetch_and_add, 1, four)).find("4 bytes, not 8"),
            std::string::npos);
  EXPECT_NE(error_of([&] { pair.post_receive(1, unregistered[0]); }).find("does not open"),
            std::string::npos);
}

TEST(Connection, a_queue_pair_that_is_not_established_takes_no_requests) {
  Pair pair;
  auto lone = pair.a.device.make_queue_pair(pair.options(pair.a));
  const SendWork send = work(Operation::send, 1, {});
  EXPECT_NE(error_of([&] { lone->post({&send, 1}); }).find("not established"), std::string::npos);
  EXPECT_NE(error_of([&] { lone->establish(); }).find("before it accepts"), std::string::npos);
}

// ------------------------------------------------------------------ the end of a connection

TEST(Connection, fail_flushes_what_was_posted_in_order) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, {}));
  const std::array from{pair.a.at(0, 8)};
  SendWork silent = remote(pair, Operation::write, 1, from, 0);
  silent.signalled = false;
  pair.post(silent);
  pair.post(remote(pair, Operation::write, 2, from, 0));
  pair.qa->fail();
  pair.post(remote(pair, Operation::write, 3, from, 0));
  pair.qb->fail();
  pair.run();
  const auto done = Node::poll(*pair.a.sends);
  ASSERT_EQ(done.size(), 3u); // the unsignalled one too
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].id, i + 1);
    EXPECT_EQ(done[i].status, WorkStatus::flushed);
  }
  EXPECT_EQ(Node::poll(*pair.b.receives).at(0).status, WorkStatus::flushed);
}

TEST(Connection, a_destroyed_queue_pair_is_forgotten_with_its_completions) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, {}));
  pair.post(work(Operation::send, 1, {}));
  pair.run();
  pair.qb.reset();
  EXPECT_TRUE(Node::poll(*pair.b.receives).empty());
  EXPECT_EQ(pair.b.device.queue_pair_count(), 0u);
}

} // namespace
} // namespace macadam::test
