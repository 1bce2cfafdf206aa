// SPDX-License-Identifier: BSD-3-Clause
// Puts, gets, notifications, flushes and atomics.
#include "world.h"

#include <numeric>

namespace macadam::test {
namespace {

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<unsigned char>(i * 31 + seed + i / 251);
  return made;
}

struct OfiTransfer : testing::Test {
  World world{2};
  World::Process& a = world[0];
  World::Process& b = world[1];

  void SetUp() override {
    ASSERT_TRUE(world.send(0, 1, "hello"));
    ASSERT_TRUE(world.until([&] { return b.received[0].size() == 1; }));
  }
  // Until it is not busy; then until it is complete.
  template <class Post>
  void run(std::uint64_t cookie, Post&& post) {
    Posted posted = Posted::busy;
    ASSERT_TRUE(world.until([&] { return (posted = post(cookie)) != Posted::busy; }));
    ASSERT_NE(posted, Posted::refused);
    if (posted == Posted::done) return;
    ASSERT_EQ(posted, Posted::pending);
    ASSERT_TRUE(world.until([&] { return a.completed.contains(cookie); }));
    EXPECT_TRUE(a.completed[cookie]);
  }
  void flush(std::uint64_t cookie) {
    run(cookie, [&](std::uint64_t c) { return a.transport->flush(a.link(1), c); });
  }
};

TEST_F(OfiTransfer, PutsAndGetsOfAllLengths) {
  std::uint64_t cookie = 0;
  for (const std::size_t bytes : {1u, 8u, 63u, 64u, 65u, 500u, 4096u, 20'000u, 3'000'000u}) {
    auto source = pattern(bytes, 1);
    std::vector<unsigned char> there(bytes + 2, 0xee), back(bytes);
    const RemoteMemory memory = b.transport->register_region(there.data(), there.size());
    const RemoteMemory inside = {memory.address + 1, memory.key};
    run(++cookie, [&](std::uint64_t c) {
      return a.transport->put(a.link(1), source.data(), inside, bytes, c);
    });
    flush(++cookie);
    EXPECT_EQ(there.front(), 0xee);
    EXPECT_EQ(there.back(), 0xee);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), there.begin() + 1)) << bytes;
    run(++cookie, [&](std::uint64_t c) {
      return a.transport->get(a.link(1), back.data(), inside, bytes, c);
    });
    EXPECT_EQ(back, source) << bytes;
    b.transport->deregister_region(memory);
  }
}

// The rule that engine and windows stand on: what is put is there before a later message, where
// Limits say so; else the message is not taken before.
TEST_F(OfiTransfer, AMessageFindsThePutBeforeIt) {
  constexpr std::size_t bytes = 300'000;
  std::vector<unsigned char> there(bytes);
  const RemoteMemory memory = b.transport->register_region(there.data(), bytes);
  unsigned seen = 0;
  b.on_receive = [&](Rank) {
    ++seen;
    const auto expected = pattern(bytes, seen);
    ASSERT_EQ(there, expected) << seen;
  };
  for (unsigned n = 1; n <= 50; ++n) {
    const auto source = pattern(bytes, n);
    Posted posted = Posted::busy;
    ASSERT_TRUE(world.until([&] {
      posted = a.transport->put(a.link(1), source.data(), memory, bytes, n);
      return posted != Posted::busy;
    }));
    ASSERT_TRUE(world.until([&] { return a.try_send(1, "look") == Posted::done; }));
    ASSERT_TRUE(world.until([&] { return seen == n && a.completed.contains(n); }));
  }
}

TEST_F(OfiTransfer, ANotificationComesWithItsPutAndInOrderWithMessages) {
  constexpr std::size_t bytes = 100'000;
  std::vector<unsigned char> there(bytes);
  const RemoteMemory memory = b.transport->register_region(there.data(), bytes);
  std::vector<std::string> order;
  b.on_receive = [&](Rank) { order.push_back(b.received[0].back()); };
  unsigned n = 0;
  b.on_notification = [&] {
    order.push_back("put");
    EXPECT_EQ(there, pattern(bytes, n));
  };
  for (n = 1; n <= 20; ++n) {
    order.clear();
    const auto source = pattern(bytes, n);
    ASSERT_TRUE(world.until([&] { return a.try_send(1, "before") == Posted::done; }));
    run(n, [&](std::uint64_t c) {
      return a.transport->put_notified(a.link(1), source.data(), memory, bytes, c, 0xabcde00 + n);
    });
    ASSERT_TRUE(world.until([&] { return a.try_send(1, "after") == Posted::done; }));
    ASSERT_TRUE(world.until([&] { return order.size() == 3; }));
    EXPECT_EQ(order, (std::vector<std::string>{"before", "put", "after"}));
    EXPECT_EQ(b.notifications.back().notification, 0xabcde00 + n);
    EXPECT_EQ(b.notifications.back().bytes, bytes);
  }
}

TEST_F(OfiTransfer, RegisteredForTransfersUntilReleased) {
  auto source = pattern(50'000, 3);
  std::vector<unsigned char> there(50'000);
  const RemoteMemory memory = b.transport->register_cached(there.data(), there.size());
  const RemoteMemory again = b.transport->register_cached(there.data(), there.size());
  run(1, [&](std::uint64_t c) {
    return a.transport->put(a.link(1), source.data(), memory, source.size(), c);
  });
  flush(2);
  EXPECT_EQ(there, source);
  b.transport->release_cached(memory);
  run(3, [&](std::uint64_t c) {
    return a.transport->get(a.link(1), source.data(), again, source.size(), c);
  });
  b.transport->release_cached(again);
}

// A process registers several things at a time, and each is released by its own key.
TEST_F(OfiTransfer, SeveralRegisteredAtATime) {
  std::vector<std::vector<unsigned char>> there(5, std::vector<unsigned char>(50'000));
  std::vector<RemoteMemory> memory;
  memory.reserve(there.size());
  for (auto& each : there)
    memory.push_back(b.transport->register_cached(each.data(), each.size()));
  for (std::uint64_t i = 0; i < there.size(); ++i) {
    auto source = pattern(50'000, static_cast<unsigned>(i) + 20);
    run(2 * i + 1, [&](std::uint64_t c) {
      return a.transport->put(a.link(1), source.data(), memory[i], source.size(), c);
    });
    flush(2 * i + 2);
    EXPECT_EQ(there[i], source);
    b.transport->release_cached(memory[i]);
  }
}

TEST_F(OfiTransfer, MemoryOfTheHeap) {
  auto* const block = static_cast<unsigned char*>(b.transport->allocate(10'000));
  ASSERT_NE(block, nullptr);
  const RemoteMemory memory = b.transport->register_cached(block, 10'000);
  const auto source = pattern(10'000, 9);
  run(1, [&](std::uint64_t c) {
    return a.transport->put(a.link(1), source.data(), memory, source.size(), c);
  });
  flush(2);
  EXPECT_TRUE(std::equal(source.begin(), source.end(), block));
  b.transport->release_cached(memory);
  b.transport->free(block);
}

TEST_F(OfiTransfer, AtomicsReturnTheOldValue) {
  std::uint64_t word = 40;
  const RemoteMemory memory = b.transport->register_region(&word, sizeof word);
  std::uint64_t old = 0;
  run(1, [&](std::uint64_t c) {
    return a.transport->atomic(a.link(1), {engine::Atomic::Kind::fetch_and_add, 2, 0}, memory, &old,
                               c);
  });
  EXPECT_EQ(old, 40u);
  EXPECT_EQ(word, 42u);
  run(2, [&](std::uint64_t c) {
    return a.transport->atomic(a.link(1), {engine::Atomic::Kind::compare_and_swap, 7, 42}, memory,
                               &old, c);
  });
  EXPECT_EQ(old, 42u);
  EXPECT_EQ(word, 7u);
  run(3, [&](std::uint64_t c) {
    return a.transport->atomic(a.link(1), {engine::Atomic::Kind::compare_and_swap, 9, 42}, memory,
                               &old, c);
  });
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(word, 7u);
  // Its own process has the same word by the same name.
  ASSERT_EQ(
      b.transport->atomic(b.link(1), {engine::Atomic::Kind::fetch_and_add, 1, 0}, memory, &old, 4),
      Posted::done);
  EXPECT_EQ(word, 8u);
}

// A word beyond what is registered, and one under a key that was revoked.
TEST_F(OfiTransfer, AtomicsOutsideRegisteredMemoryFail) {
  std::array<std::uint64_t, 2> words = {1, 2};
  const RemoteMemory memory = b.transport->register_region(words.data(), sizeof words[0]);
  std::uint64_t old = 99;
  const auto fails = [&](RemoteMemory target, std::uint64_t cookie) {
    Posted posted = Posted::busy;
    ASSERT_TRUE(world.until([&] {
      posted = a.transport->atomic(a.link(1), {engine::Atomic::Kind::fetch_and_add, 1, 0}, target,
                                   &old, cookie);
      return posted != Posted::busy;
    }));
    ASSERT_TRUE(world.until([&] { return a.completed.contains(cookie); }));
    EXPECT_FALSE(a.completed[cookie]);
  };
  fails({memory.address + 8, memory.key}, 1);
  fails({memory.address + 4, memory.key}, 2); // half of it
  fails({memory.address, memory.key ^ 1}, 3);
  b.transport->deregister_region(memory);
  fails(memory, 4);
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[1], 2u);
  EXPECT_EQ(old, 99u);
}

TEST_F(OfiTransfer, ManyAtOnce) {
  constexpr std::size_t count = 3000;
  std::vector<std::uint64_t> there(count), here(count), back(count);
  std::iota(here.begin(), here.end(), std::uint64_t{1});
  const RemoteMemory memory = b.transport->register_region(there.data(), count * 8);
  std::size_t next = 0;
  ASSERT_TRUE(world.until([&] {
    for (; next < count; ++next) {
      const Posted posted = a.transport->put(a.link(1), &here[next],
                                             {memory.address + 8 * next, memory.key}, 8, next + 1);
      if (posted == Posted::busy) return false;
    }
    return true;
  }));
  flush(count + 1);
  EXPECT_EQ(there, here);
  next = 0;
  ASSERT_TRUE(world.until([&] {
    for (; next < count; ++next) {
      const Posted posted = a.transport->get(
          a.link(1), &back[next], {memory.address + 8 * next, memory.key}, 8, 10'000 + next);
      if (posted == Posted::busy) return false;
    }
    return true;
  }));
  ASSERT_TRUE(world.until([&] { return a.transport->drain(); }));
  EXPECT_EQ(back, here);
}

} // namespace
} // namespace macadam::test
