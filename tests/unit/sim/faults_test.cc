// SPDX-License-Identifier: BSD-3-Clause
// What goes wrong, and that the same seed goes wrong in the same way.
#include "devices.h"

namespace macadam::test {
namespace {

TEST(NotReady, a_message_waits_for_a_receive_and_those_behind_it_do_too) {
  Pair pair;
  pair.connect(); // retries for ever, every 0.64 ms
  for (std::uint64_t i = 1; i <= 3; ++i)
    pair.post(work(Operation::send, i, {}));
  pair.run(100 * sim::microsecond);
  EXPECT_TRUE(Node::poll(*pair.a.sends).empty());
  for (std::uint64_t i = 1; i <= 3; ++i)
    ASSERT_TRUE(pair.post_receive(i, {}));
  pair.run();
  const auto received = Node::poll(*pair.b.receives);
  ASSERT_EQ(received.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(received[i].id, i + 1);
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 3u);
  EXPECT_EQ(pair.fabric.counters.receiver_not_ready, 1u);
}

TEST(NotReady, what_was_delivered_before_is_not_delivered_again) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, {}));
  for (std::uint64_t i = 1; i <= 3; ++i)
    pair.post(work(Operation::send, i, {}));
  pair.run(100 * sim::microsecond);
  EXPECT_EQ(Node::poll(*pair.b.receives).size(), 1u);
  ASSERT_TRUE(pair.post_receive(2, {}));
  ASSERT_TRUE(pair.post_receive(3, {}));
  ASSERT_TRUE(pair.post_receive(4, {}));
  pair.run();
  EXPECT_EQ(Node::poll(*pair.b.receives).size(), 2u);
}

TEST(NotReady, the_retries_end_with_no_receiver) {
  Pair pair;
  Retries retries;
  retries.receiver_not_ready = 2;
  retries.receiver_not_ready_timer = 1; // 10 us
  pair.connect(retries);
  pair.post(work(Operation::send, 1, {}));
  pair.post(work(Operation::send, 2, {}));
  pair.run();
  const auto done = Node::poll(*pair.a.sends);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, WorkStatus::no_receiver);
  EXPECT_EQ(done[1].status, WorkStatus::flushed);
  EXPECT_EQ(pair.fabric.counters.receiver_not_ready, 3u);
}

TEST(NoAnswer, a_queue_pair_that_accepts_late_gets_everything_once) {
  Pair pair;
  pair.qa = pair.a.device.make_queue_pair(pair.options(pair.a));
  pair.qb = pair.b.device.make_queue_pair(pair.options(pair.b));
  Retries retries;
  retries.timeout = 4; // 65 us
  pair.qa->accept({pair.b.device.address(), pair.qb->number()}, retries);
  pair.qa->establish();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(pair.post_receive(i, {}));
    pair.post(work(Operation::send, i, {}));
  }
  pair.run(100 * sim::microsecond);
  EXPECT_TRUE(Node::poll(*pair.b.receives).empty());
  pair.qb->accept({pair.a.device.address(), pair.qa->number()}, retries);
  pair.run();
  const auto received = Node::poll(*pair.b.receives);
  ASSERT_EQ(received.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(received[i].id, i + 1);
  EXPECT_GE(pair.fabric.counters.resends, 1u);
}

TEST(NoAnswer, the_resends_end) {
  Pair pair;
  Retries retries;
  retries.timeout = 1; // 8 us
  retries.count = 2;
  pair.connect(retries);
  pair.qb.reset();
  pair.post(work(Operation::send, 1, {}));
  pair.run();
  EXPECT_EQ(Node::poll(*pair.a.sends).at(0).status, WorkStatus::no_answer);
  EXPECT_EQ(pair.fabric.counters.resends, 2u);
}

TEST(NoAnswer, a_queue_pair_connected_to_another_one_does_not_answer) {
  Pair pair;
  Retries retries;
  retries.timeout = 1;
  retries.count = 0;
  pair.connect(retries);
  auto third = pair.a.device.make_queue_pair(pair.options(pair.a));
  third->accept({pair.b.device.address(), pair.qb->number()}, retries);
  third->establish();
  const SendWork send = work(Operation::send, 1, {});
  third->post({&send, 1});
  pair.run();
  EXPECT_EQ(Node::poll(*pair.a.sends).at(0).status, WorkStatus::no_answer);
}

TEST(Breaking, ends_a_connection_by_chance) {
  Faults faults;
  faults.queue_pair_break = 0.2;
  Pair pair({}, faults);
  pair.connect();
  for (int i = 0; i < 16; ++i)
    pair.post(work(Operation::write, static_cast<std::uint64_t>(i), {}));
  pair.run();
  const auto done = Node::poll(*pair.a.sends);
  ASSERT_EQ(done.size(), 16u);
  EXPECT_EQ(std::count_if(done.begin(), done.end(),
                          [](const auto& each) { return each.status == WorkStatus::no_answer; }),
            1);
  EXPECT_EQ(done.back().status, WorkStatus::flushed);
  EXPECT_EQ(pair.fabric.counters.broken, 1u);
}

// The last-byte method of Small & Yuan (section 4.1) stands or falls with this.
TEST(SplitWrites, show_the_last_byte_last_only_where_the_device_orders_bytes) {
  for (const bool ordered : {true, false}) {
    Model model;
    model.orders_bytes = ordered;
    model.bandwidth_mb_per_s = 1;
    Faults faults;
    faults.split_writes = true;
    Pair pair(model, faults);
    pair.connect();
    bool partial = false, last_first = false;
    for (int round = 0; round < 20; ++round) {
      std::fill(pair.b.memory.begin(), pair.b.memory.end(), std::byte{0});
      pair.a.put(0, std::string(100, 'x'));
      const std::array from{pair.a.at(0, 100)};
      SendWork write = work(Operation::write, 1, from);
      write.remote_address = pair.b.address(0);
      write.remote_key = static_cast<std::uint32_t>(pair.b.region->remote_key);
      pair.post(write);
      while (pair.b.memory[0] != std::byte{'x'} || pair.b.memory[99] != std::byte{'x'}) {
        ASSERT_TRUE(pair.scheduler.step());
        const std::string seen = pair.b.get(0, 100);
        if (seen.find('x') == std::string::npos) continue;
        if (seen.find('\0') != std::string::npos) partial = true;
        if (seen.back() == 'x' && seen.front() != 'x') last_first = true;
      }
      pair.run();
      EXPECT_EQ(pair.b.get(0, 100), std::string(100, 'x'));
      Node::poll(*pair.a.sends);
    }
    EXPECT_TRUE(partial);
    EXPECT_EQ(last_first, !ordered);
  }
}

// What is told of a later request, or shown by a later write, comes before the data of an earlier
// write only where the device says so; a read and a completion find them always.
TEST(LateWrites, are_passed_by_what_the_device_does_not_order) {
  struct Seen {
    bool write = false, arrival = false, read = false, completion = false; // passed the first write
  };
  const auto look = [](bool orders_writes, bool orders_arrivals) {
    Model model;
    model.orders_writes = orders_writes;
    model.orders_arrivals = orders_arrivals;
    Pair pair(model);
    pair.connect();
    Seen seen;
    for (int round = 0; round < 50; ++round) {
      for (Node* node : {&pair.a, &pair.b})
        std::fill(node->memory.begin(), node->memory.end(), std::byte{0});
      pair.a.put(0, "x");
      const std::array first{pair.a.at(0, 1)}, second{pair.a.at(0, 1)}, back{pair.a.at(20, 1)};
      std::array works{work(Operation::write, 1, first), work(Operation::write, 2, second),
                       work(Operation::send, 3, {}), work(Operation::read, 4, back)};
      if (round % 2 == 0) std::swap(works[1], works[3]); // else it would find them placed
      for (SendWork& each : works) {
        each.remote_address = pair.b.address(each.id == 2 ? 10 : 0);
        each.remote_key = static_cast<std::uint32_t>(pair.b.region->remote_key);
      }
      EXPECT_TRUE(pair.post_receive(9, {}));
      for (const SendWork& each : works)
        pair.post(each);
      const auto there = [&] { return pair.b.get(0, 1) == "x"; };
      for (std::size_t done = 0; done < works.size();) {
        if (!pair.scheduler.step()) {
          ADD_FAILURE() << "the requests do not end";
          return seen;
        }
        if (pair.b.get(10, 1) == "x" && !there()) seen.write = true;
        if (!Node::poll(*pair.b.receives).empty() && !there()) seen.arrival = true;
        const auto ended = Node::poll(*pair.a.sends);
        if (!ended.empty() && !there()) seen.completion = true;
        done += ended.size();
      }
      if (pair.a.get(20, 1) != "x") seen.read = true;
    }
    return seen;
  };
  for (const bool orders_writes : {true, false}) {
    for (const bool orders_arrivals : {true, false}) {
      const Seen seen = look(orders_writes, orders_arrivals);
      EXPECT_EQ(seen.write, !orders_writes);
      EXPECT_EQ(seen.arrival, !orders_writes && !orders_arrivals);
      EXPECT_FALSE(seen.read);
      EXPECT_FALSE(seen.completion);
    }
  }
}

TEST(Exhaustion, of_queue_pairs_and_regions_is_told_with_the_number) {
  Model model;
  model.queue_pairs = 2;
  model.regions = 1; // of each node's own
  Pair pair(model);
  auto first = pair.a.device.make_queue_pair(pair.options(pair.a));
  auto second = pair.a.device.make_queue_pair(pair.options(pair.a));
  EXPECT_NE(error_of([&] {
              pair.a.device.make_queue_pair(pair.options(pair.a));
            }).find("all 2 queue pairs are in use"),
            std::string::npos);
  second.reset();
  EXPECT_NO_THROW(second = pair.a.device.make_queue_pair(pair.options(pair.a)));
  EXPECT_NE(error_of([&] {
              pair.a.device.register_memory(&model, 8, Access::local);
            }).find("all 1 memory regions are in use"),
            std::string::npos);
}

TEST(Exhaustion, of_memory_to_pin) {
  Model model;
  model.registered_mb = 1;
  Pair pair(model);
  std::vector<std::byte> much(1'000'000);
  EXPECT_NE(error_of([&] {
              pair.a.device.register_memory(much.data(), much.size(), Access::local);
            }).find("1000000 bytes cannot be pinned beyond the 65536 that are"),
            std::string::npos);
}

TEST(Exhaustion, a_device_without_shared_queues_or_atomics_says_so) {
  Model model;
  model.shared_depth = 0;
  model.atomics = false;
  Pair pair(model);
  pair.connect();
  EXPECT_NE(error_of([&] {
              pair.a.device.make_shared_receive_queue(8);
            }).find("no shared receive queues"),
            std::string::npos);
  const std::array to{pair.a.at(0, 8)};
  EXPECT_NE(error_of([&] {
              pair.post(work(Operation::fetch_and_add, 1, to));
            }).find("atomic, which the device does not have"),
            std::string::npos);
}

TEST(Overrun, of_a_completion_queue_is_an_error_that_nobody_overlooks) {
  Pair pair;
  auto small = pair.a.device.make_completion_queue(2, false);
  QueuePairOptions of_a = pair.options(pair.a);
  of_a.sends = small.get();
  pair.connect(of_a, pair.options(pair.b));
  for (std::uint64_t i = 0; i < 3; ++i)
    pair.post(work(Operation::write, i, {}));
  EXPECT_NE(error_of([&] { pair.run(); }).find("completion queue of 2 was overrun"),
            std::string::npos);
  pair.qa.reset();
}

std::uint64_t trace_of(std::uint64_t seed) {
  Faults faults;
  faults.jitter = 3;
  faults.datagram_loss = 0.1;
  faults.shuffle = true;
  Pair pair({}, faults, seed);
  pair.connect();
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(pair.post_receive(1, {}));
      pair.post(work(Operation::send, 1, {}));
    }
    pair.run();
    Node::poll(*pair.a.sends);
    Node::poll(*pair.b.receives);
  }
  return pair.scheduler.trace_hash();
}

TEST(Determinism, the_same_seed_gives_the_same_trace_and_another_seed_another) {
  EXPECT_EQ(trace_of(1), trace_of(1));
  EXPECT_EQ(trace_of(2), trace_of(2));
  EXPECT_NE(trace_of(1), trace_of(2));
}

} // namespace
} // namespace macadam::test
