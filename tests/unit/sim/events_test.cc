// SPDX-License-Identifier: BSD-3-Clause
// Completion events, the limit event of a shared receive queue, the progress thread, waiting.
#include "devices.h"

namespace macadam::test {
namespace {

struct Sink final : EventSink {
  explicit Sink(Pair& of) : pair(of) {}
  void on_limit(SharedReceiveQueue& queue) noexcept override {
    limits.push_back(pair.scheduler.now());
    if (refill > 0) {
      queue.post(std::vector<ReceiveWork>(refill));
      queue.arm_limit(2);
    }
  }
  void on_completions(CompletionQueue& queue) noexcept override {
    completions.push_back(pair.scheduler.now());
    polled += Node::poll(queue).size();
  }
  void on_failure(std::uint32_t, const std::string& reason) noexcept override { failure = reason; }
  Pair& pair;
  std::string failure;
  std::size_t refill = 0;
  std::size_t polled = 0;
  std::vector<sim::Time> limits, completions;
};

struct Shared : Pair {
  explicit Shared(const Model& model = {}) : Pair(model), sink(*this) {
    queue = b.device.make_shared_receive_queue(64);
    QueuePairOptions of_b = options(b);
    of_b.shared = queue.get();
    connect(options(a), of_b);
    b.device.set_event_sink(&sink);
  }
  // The queue pair uses the queue: it goes first.
  ~Shared() { qb.reset(); }
  void send(int count) {
    for (int i = 0; i < count; ++i)
      post(work(Operation::send, 1, {}));
  }
  void compute() { // of the receiver, for a millisecond
    b.device.compute(1000 * sim::microsecond);
  }
  std::unique_ptr<SharedReceiveQueue> queue;
  Sink sink;
};

TEST(Limit, is_told_once_when_fewer_receives_are_left_and_after_the_progress_thread_woke) {
  Shared pair;
  ASSERT_EQ(pair.queue->post(std::vector<ReceiveWork>(5)), 5u);
  pair.queue->arm_limit(4);
  const sim::Time before = pair.a.processor.now();
  pair.send(1);
  pair.compute();
  EXPECT_TRUE(pair.sink.limits.empty()); // 4 are left, not fewer
  pair.send(3);
  pair.compute();
  ASSERT_EQ(pair.sink.limits.size(), 1u);
  EXPECT_GT(pair.sink.limits[0], before + 12 * sim::microsecond);
}

TEST(Limit, armed_too_late_is_told_at_once_and_zero_disarms) {
  Shared pair;
  pair.queue->arm_limit(4);
  pair.compute();
  EXPECT_EQ(pair.sink.limits.size(), 1u);
  ASSERT_EQ(pair.queue->post(std::vector<ReceiveWork>(5)), 5u);
  pair.queue->arm_limit(4);
  pair.queue->arm_limit(0);
  pair.send(3);
  pair.compute();
  EXPECT_EQ(pair.sink.limits.size(), 1u);
}

// Sur et al., section 4.1.3: the queue is filled again while the process computes.
TEST(Limit, the_progress_thread_refills_while_the_process_computes) {
  Shared pair;
  pair.sink.refill = 8;
  ASSERT_EQ(pair.queue->post(std::vector<ReceiveWork>(4)), 4u);
  pair.queue->arm_limit(2);
  pair.send(12);
  const sim::Time before = pair.b.processor.now();
  pair.compute();
  EXPECT_EQ(Node::poll(*pair.b.receives).size(), 12u);
  EXPECT_GE(pair.sink.limits.size(), 1u);
  // What the progress thread took, the computation took longer.
  EXPECT_GT(pair.b.processor.now(), before + 1000 * sim::microsecond + 3 * sim::microsecond);
}

TEST(AsyncQueue, a_completion_calls_the_sink_once_per_arm) {
  Pair pair;
  Sink sink(pair);
  auto queue = pair.b.device.make_completion_queue(64, true);
  QueuePairOptions of_b = pair.options(pair.b);
  of_b.receives = queue.get();
  pair.connect(pair.options(pair.a), of_b);
  pair.b.device.set_event_sink(&sink);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(pair.post_receive(1, {}));
  pair.post(work(Operation::send, 1, {}));
  pair.b.device.compute(sim::microsecond * 100);
  EXPECT_TRUE(sink.completions.empty()); // it was not armed
  queue->arm();
  pair.b.device.compute(sim::microsecond * 100);
  EXPECT_TRUE(sink.completions.empty()); // what had come before the call is no event
  pair.post(work(Operation::send, 1, {}));
  pair.post(work(Operation::send, 1, {}));
  pair.b.device.compute(sim::microsecond * 100);
  EXPECT_EQ(sink.completions.size(), 1u);
  EXPECT_EQ(sink.polled, 3u);
  pair.b.device.set_event_sink(nullptr);
  queue->arm();
  pair.post(work(Operation::send, 1, {}));
  pair.b.device.compute(sim::microsecond * 100);
  EXPECT_EQ(sink.completions.size(), 1u);
  pair.qb.reset();
}

TEST(AsyncQueue, nobody_is_called_inside_a_call_that_may_hold_a_lock) {
  Shared pair;
  auto other = pair.b.device.make_completion_queue(8, false); // of no connection
  const auto due = [&] {
    pair.queue->arm_limit(1); // at once
    for (int i = 0; i < 1000; ++i) {
      Node::poll(*other);
      EXPECT_EQ(pair.queue->post({}), 0u);
      pair.b.device.make_address_handle({});
    }
    return pair.sink.limits.size();
  };
  EXPECT_EQ(due(), 0u);
  pair.b.device.yield();
  EXPECT_EQ(pair.sink.limits.size(), 1u);
  EXPECT_EQ(due(), 1u);
  Node::poll(*pair.b.receives); // a process that only polls starves nobody
  EXPECT_EQ(pair.sink.limits.size(), 2u);
}

TEST(Wait, ends_with_the_event_of_an_armed_queue) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, {}));
  pair.post(work(Operation::send, 1, {}));
  pair.b.receives->arm();
  const sim::Time before = pair.b.processor.now();
  pair.b.device.wait(1000);
  EXPECT_LT(pair.b.processor.now(), before + 500 * sim::microsecond);
  EXPECT_GT(pair.b.processor.now(),
            before + sim::from_ns(Model{}.wake_ns)); // waking takes its time
  EXPECT_EQ(Node::poll(*pair.b.receives).size(), 1u);
}

TEST(Wait, lasts_as_long_as_asked_for_without_an_event) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, {}));
  pair.post(work(Operation::send, 1, {})); // not armed
  const sim::Time before = pair.b.processor.now();
  pair.b.device.wait(1000);
  EXPECT_GE(pair.b.processor.now(), before + 1000 * sim::microsecond);
}

TEST(Wait, an_event_or_a_wake_since_the_last_one_ends_it_at_once) {
  Pair pair;
  pair.connect();
  ASSERT_TRUE(pair.post_receive(1, {}));
  pair.b.receives->arm();
  pair.post(work(Operation::send, 1, {}));
  pair.run();
  const auto lasts = [&] {
    const sim::Time before = pair.b.processor.now();
    pair.b.device.wait(1000);
    return pair.b.processor.now() - before;
  };
  EXPECT_LT(lasts(), 10 * sim::microsecond);
  EXPECT_GE(lasts(), 1000 * sim::microsecond);
  pair.b.device.wake();
  EXPECT_LT(lasts(), 10 * sim::microsecond);
  EXPECT_GE(lasts(), 1000 * sim::microsecond);
}

TEST(Yield, ends_as_soon_as_a_write_has_come) {
  Model model;
  model.spin_ns = 1e9;
  Pair pair(model);
  pair.connect();
  Node::poll(*pair.b.receives);
  const std::array from{pair.a.at(0, 8)};
  SendWork write = work(Operation::write, 1, from);
  write.remote_address = pair.b.address(0);
  write.remote_key = static_cast<std::uint32_t>(pair.b.region->remote_key);
  pair.post(write);
  const sim::Time before = pair.b.processor.now();
  pair.b.device.yield();
  EXPECT_LT(pair.b.processor.now(), before + 1000 * sim::microsecond);
}

} // namespace
} // namespace macadam::test
