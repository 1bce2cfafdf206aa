// SPDX-License-Identifier: BSD-3-Clause
// The pool of message buffers grows for a burst and gives back what nobody wants any more.
#include "world.h"

#include "net/rdma/model.h"

namespace macadam::test {
namespace {

constexpr double period = BufferPool::period;

class Pool : public testing::Test {
 protected:
  World world{1};
  BufferPool pool{world[0].device, 1024, 1000};
  std::vector<Buffer*> held;

  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      held.push_back(pool.take());
      ASSERT_NE(held.back(), nullptr);
    }
  }
  void give(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      pool.give(held.back());
      held.pop_back();
    }
  }
  [[nodiscard]] std::size_t buffers() const { return pool.made(); }
};

TEST_F(Pool, gives_back_what_was_not_wanted_for_two_periods) {
  take(10);
  take(300);
  const std::size_t most = buffers();
  give(300);
  pool.trim(1.0 * period);
  EXPECT_EQ(buffers(), most); // wanted in this period
  pool.trim(1.5 * period);
  pool.trim(2.0 * period);
  EXPECT_EQ(buffers(), most); // ... in the one before
  EXPECT_TRUE(pool.falling());
  pool.trim(3.0 * period);
  EXPECT_LE(buffers(), 10 + BufferPool::smallest_arena + BufferPool::spare);
  EXPECT_GE(buffers(), 10u);
  pool.trim(4.0 * period);
  EXPECT_FALSE(pool.grown());
  EXPECT_FALSE(pool.falling());
}

TEST_F(Pool, keeps_what_a_burst_in_every_period_wants) {
  take(300);
  const std::size_t most = buffers();
  give(300);
  for (int round = 1; round < 20; ++round) {
    pool.trim(round * period);
    take(300);
    give(300);
    ASSERT_EQ(buffers(), most) << round;
  }
}

TEST_F(Pool, keeps_what_is_reserved_for_good) {
  take(10);
  pool.reserve(200);
  const std::size_t reserved = buffers();
  EXPECT_GE(reserved, 210 + BufferPool::spare);
  take(600);
  EXPECT_GE(buffers(), 610u);
  give(610);
  for (int round = 1; round < 10; ++round) {
    pool.trim(round * period);
    ASSERT_GE(buffers(), 210 + BufferPool::spare) << round;
  }
  EXPECT_LE(buffers(), reserved + BufferPool::smallest_arena);
  take(210); // registers nothing
  EXPECT_LE(buffers(), reserved + BufferPool::smallest_arena);
}

// A process that waits wakes each period as long as the pool falls.
TEST_F(Pool, falls_only_while_something_can_be_given_back) {
  take(300);
  give(300);
  for (int round = 1; round < 6; ++round) {
    take(5);
    give(5);
    pool.trim(round * period);
    ASSERT_FALSE(pool.falling() && !pool.grown()) << round;
  }
  EXPECT_FALSE(pool.falling());
}

TEST_F(Pool, keeps_every_buffer_that_is_taken) {
  take(300);
  for (int round = 1; round < 5; ++round) {
    pool.trim(round * period);
    for (Buffer* const buffer : held)
      std::memset(buffer->memory, round, pool.buffer_bytes());
  }
  give(300);
  take(300);
  EXPECT_EQ(pool.taken(), 300u);
}

// Buffers that stay taken lie in many arenas, each by itself: exchanged as they come by, they empty
// the arenas that are not needed.
TEST_F(Pool, empties_arenas_by_exchange) {
  take(320);
  std::vector<Buffer*> left;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (i % 32 == 7)
      left.push_back(held[i]);
    else
      pool.give(held[i]);
  }
  held.clear();
  for (int round = 1; round <= 3; ++round)
    pool.trim(round * period);
  EXPECT_GT(buffers(), 300u); // nothing is empty
  EXPECT_TRUE(pool.retiring());
  for (Buffer*& buffer : left)
    buffer = pool.exchange(buffer);
  EXPECT_EQ(pool.taken(), left.size());
  pool.trim(4 * period);
  EXPECT_LE(buffers(), 2 * BufferPool::smallest_arena + BufferPool::spare);
  EXPECT_FALSE(pool.retiring());
  pool.give(left);
  EXPECT_EQ(pool.taken(), 0u);
}

TEST_F(Pool, takes_from_an_arena_that_was_to_be_emptied_before_it_grows) {
  take(320);
  std::vector<Buffer*> kept;
  for (std::size_t i = 0; i < held.size(); i += 32)
    kept.push_back(held[i]);
  for (std::size_t i = 0; i < held.size(); ++i)
    if (i % 32 != 0) pool.give(held[i]);
  held.clear();
  for (int round = 1; round <= 3; ++round)
    pool.trim(round * period);
  const std::size_t made = buffers();
  take(made - kept.size());
  EXPECT_EQ(buffers(), made);
  pool.give(kept);
}

// As a whole: a burst at a rank that computes, and then little traffic for a while.
TEST(Shared, what_a_burst_needed_is_given_back) {
  World world(2, small_settings());
  world.start();
  Stream before(world, 0, 1, 100);
  ASSERT_TRUE(world.until([&] { return before.push() && before.arrived(); }));
  const auto held = [&] { return world[1].transport->memory_bytes(); };
  const std::size_t usual = held();
  world[1].received.clear();
  Stream burst(world, 0, 1, 200);
  world.until([&] { return burst.push(); }, 5000, 1);
  ASSERT_TRUE(world.until([&] { return burst.push() && burst.arrived(); }));
  EXPECT_GT(held(), usual + 100 * 1024);
  burst.check();
  for (int round = 0; round < 6; ++round) {
    world[1].device.compute(1000000 * sim::microsecond);
    for (unsigned fruitless = 0; fruitless < 20; ++fruitless) // a wait
      world[1].transport->idle(fruitless, 10);
    world[0].received.clear();
    world[1].received.clear();
    Stream little(world, 0, 1, 100);
    ASSERT_TRUE(world.until([&] { return little.push() && little.arrived(); }));
    little.check();
  }
  EXPECT_LE(held(),
            usual + 2 * BufferPool::smallest_arena * (model::buffer_bytes(1024) + sizeof(Buffer)));
}

} // namespace
} // namespace macadam::test
