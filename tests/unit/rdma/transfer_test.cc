// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets, and what orders them.
#include "world.h"

#include <numeric>

namespace macadam::test {
namespace {

using engine::RemoteMemory;

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>((i * 7 + i / 251 + seed) & 255);
  return data;
}

// As Gravel does: nobody watches the program's memory, it is registered by hand.
TEST(Transfer, parts_of_registered_memory_are_neither_registered_again_nor_copied) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::vector<std::byte> source(200'000), target(source.size());
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  const RemoteMemory own = world[0].transport->register_cached(source.data(), source.size());
  std::uint64_t cookie = 0;
  for (const std::size_t bytes : {500u, 5'000u, 50'000u}) {
    const RemoteMemory there{remote.address + bytes, remote.key};
    ASSERT_EQ(world[0].transport->put(world[0].link(1), &source[bytes], there, bytes, ++cookie),
              Posted::pending);
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(cookie); }));
    ASSERT_EQ(world[0].transport->get(world[0].link(1), &source[bytes], there, bytes, ++cookie),
              Posted::pending);
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(cookie); }));
  }
  EXPECT_EQ(world[0].counter("registrations"), 1u);
  EXPECT_EQ(world[0].counter("bounced"), 0u);
  world[0].transport->release_cached(own);
  world[1].transport->release_cached(remote);
}

// The contract of engine/transport.h, on a device that would let the message pass.
TEST(Transfer, messages_wait_for_a_put_where_they_could_pass_it) {
  for (const bool ordered : {true, false}) {
    Model model;
    model.orders_writes = model.orders_arrivals = ordered;
    World world(2, small_settings(), model);
    world.start();
    ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
    EXPECT_EQ(world[0].transport->limits().orders_puts, ordered);
    EXPECT_EQ(world[0].transport->limits().orders_writes, ordered);
    std::vector<std::byte> source = pattern(100, 1), target(source.size());
    const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
    ASSERT_NE(world[0].transport->put(world[0].link(1), source.data(), remote, source.size(), 7),
              Posted::busy);
    EXPECT_EQ(world[0].try_send(1, "FIN"), ordered ? Posted::done : Posted::busy);
    if (ordered) continue;
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(7); }));
    EXPECT_EQ(target, source);
    EXPECT_EQ(world[0].try_send(1, "FIN"), Posted::done);
    world[1].transport->release_cached(remote);
  }
}

// Windows: who keeps the key of memory that was given back, and registered anew at the same place,
// does not reach it.
TEST(Transfer, a_region_is_reached_only_by_the_key_of_its_time) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::uint64_t word = 0, value = 7;
  RdmaTransport &owner = *world[1].transport, &other = *world[0].transport;
  const auto write = [&](RemoteMemory to, std::uint64_t cookie) {
    ASSERT_NE(other.write(world[0].link(1), &value, to, sizeof value, cookie), Posted::busy);
    ASSERT_EQ(other.flush(world[0].link(1), cookie + 1), Posted::pending);
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(cookie + 1); }));
  };
  const RemoteMemory first = owner.register_region(&word, sizeof word);
  write(first, 1);
  EXPECT_TRUE(world[0].completed[2]);
  EXPECT_EQ(word, 7u);
  owner.deregister_region(first);
  const RemoteMemory second = owner.register_region(&word, sizeof word);
  EXPECT_NE(first.key, second.key);
  value = 9;
  write(first, 3);
  EXPECT_FALSE(world[0].completed[4]);
  EXPECT_EQ(word, 7u);
  EXPECT_DEATH(owner.deregister_region(first), "is not in use");
  owner.deregister_region(second);
}

// Some pieces of memory, every second one, with all that is around them.
struct Scattered {
  static constexpr std::size_t piece = 300;
  std::vector<std::byte> memory;
  std::vector<engine::Block> blocks;
  engine::Block around;
  std::size_t bytes;

  Scattered(std::size_t count, unsigned seed)
      : memory(pattern(2 * count * piece, seed)), around{reinterpret_cast<std::uint64_t>(
                                                             memory.data()),
                                                         memory.size()},
        bytes(count * piece) {
    for (std::size_t i = 0; i < count; ++i)
      blocks.push_back({around.address + 2 * i * piece, piece});
  }
  [[nodiscard]] std::vector<std::byte> packed() const {
    std::vector<std::byte> all;
    for (const engine::Block& block : blocks) {
      const auto* const at = reinterpret_cast<const std::byte*>(block.address);
      all.insert(all.end(), at, at + block.bytes);
    }
    return all;
  }
};

// With a registration that serves the next one too; what cannot be one request is refused.
TEST(Transfer, a_gather_list_is_one_request) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  RdmaTransport& transport = *world[0].transport;
  const std::size_t most = transport.limits().local_blocks;
  ASSERT_GT(most, 1u);
  EXPECT_EQ(transport.limits().target_blocks, 1u);
  Scattered ours(most, 1);
  std::vector<std::byte> target(ours.bytes);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  engine::Block there{remote.address, target.size()};
  engine::Link& link = world[0].link(1);
  ASSERT_EQ(transport.write_blocks(link, ours.blocks, {&there, 1}, remote.key, 7, ours.around),
            Posted::pending);
  ASSERT_TRUE(world.until([&] { return world[0].completed.contains(7); }));
  EXPECT_EQ(target, ours.packed());

  Scattered back(most, 2);
  const Scattered before = back;
  ASSERT_EQ(transport.read_blocks(link, back.blocks, {&there, 1}, remote.key, 8, back.around),
            Posted::pending);
  ASSERT_TRUE(world.until([&] { return world[0].completed.contains(8); }));
  EXPECT_EQ(back.packed(), target);
  for (std::size_t i = 0; i < back.memory.size(); ++i) // gaps stay as they are
    if (i / Scattered::piece % 2 == 1) {
      ASSERT_EQ(back.memory[i], before.memory[i]) << i;
    }
  EXPECT_EQ(world[0].counter("gathered"), 2u);
  EXPECT_EQ(world[0].counter("bounced"), 0u);
  EXPECT_EQ(transport.in_use().transfers, 0u);

  const Scattered many(most + 1, 1);
  EXPECT_EQ(transport.write_blocks(link, many.blocks, {&there, 1}, remote.key, 9, many.around),
            Posted::refused);
  world[1].transport->release_cached(remote);
}

TEST(Transfer, a_gather_list_that_cannot_be_registered_is_refused) {
  Model model;
  model.regions = 20;
  World world(2, small_settings(), model);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  const Scattered ours(2, 1);
  std::vector<std::byte> target(ours.bytes);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  std::vector<std::unique_ptr<MemoryRegion>> others; // have taken what there was
  while (world[0].device.regions.count() < 20)
    others.push_back(world[0].device.register_memory(target.data(), 1, Access::local));
  const engine::Block there{remote.address, target.size()};
  EXPECT_EQ(world[0].transport->write_blocks(world[0].link(1), ours.blocks, {&there, 1}, remote.key,
                                             7, ours.around),
            Posted::refused);
  EXPECT_EQ(world[0].transport->in_use().transfers, 0u);
  EXPECT_EQ(world[0].transport->in_use().registrations, 0u);
  world[1].transport->release_cached(remote);
}

TEST(Transfer, a_gather_list_fails_with_its_connection) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  const Scattered ours(3, 1);
  std::vector<std::byte> target(ours.bytes);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  const engine::Block there{remote.address, target.size()};
  RdmaTransport& transport = *world[0].transport;
  const auto post = [&](std::uint64_t cookie) {
    return transport.write_blocks(world[0].link(1), ours.blocks, {&there, 1}, remote.key + 1,
                                  cookie, ours.around);
  };
  ASSERT_EQ(post(7), Posted::pending); // no such key: the target refuses
  ASSERT_EQ(post(8), Posted::pending);
  ASSERT_TRUE(world.until([&] { return world[0].completed.contains(8); }));
  EXPECT_FALSE(world[0].completed[7]);
  EXPECT_FALSE(world[0].completed[8]);
  EXPECT_EQ(transport.in_use().transfers, 0u);
  EXPECT_EQ(post(9), Posted::done); // as all that is posted later
  world[1].transport->release_cached(remote);
}

class Sizes : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, Sizes, testing::Values(1, 64, 500, 1024, 5000, 100000, 3000000));

TEST_P(Sizes, put_and_get) {
  Model model;
  model.message_mb = 1; // longer ones go in fragments
  World world(2, small_settings(), model);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  const std::size_t bytes = GetParam();
  const std::vector<std::byte> source = pattern(bytes, 1);
  std::vector<std::byte> target(bytes + 2);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  const RemoteMemory inside{remote.address + 1, remote.key};
  RdmaTransport& transport = *world[0].transport;
  const Posted put = transport.put(world[0].link(1), source.data(), inside, bytes, 7);
  ASSERT_NE(put, Posted::busy);
  if (put == Posted::pending) {
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(7); }));
    EXPECT_TRUE(world[0].completed[7]);
  }
  std::vector<std::byte> back(bytes);
  ASSERT_EQ(transport.get(world[0].link(1), back.data(), inside, bytes, 8), Posted::pending);
  ASSERT_TRUE(world.until([&] { return world[0].completed.contains(8); }));
  EXPECT_TRUE(world[0].completed[8]);
  EXPECT_EQ(back, source);
  EXPECT_EQ(target.front(), std::byte{0});
  EXPECT_EQ(target.back(), std::byte{0});
  world[1].transport->release_cached(remote);
  EXPECT_EQ(world.fabric.counters.refused, 0u);
}

// The local memory cannot be registered: the data go through a message buffer.
TEST_P(Sizes, put_and_get_without_a_registration) {
  Model model;
  model.regions = 20;
  World world(2, small_settings(), model);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  const std::size_t bytes = GetParam();
  const std::vector<std::byte> source = pattern(bytes, 1);
  std::vector<std::byte> target(bytes), back(bytes);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), bytes);
  RdmaTransport& transport = *world[0].transport;
  std::vector<std::unique_ptr<MemoryRegion>> others; // have taken what there was
  while (world[0].device.regions.count() < 20)
    others.push_back(world[0].device.register_memory(back.data(), 1, Access::local));
  EXPECT_THROW(transport.register_cached(back.data(), bytes), base::Error);
  Posted put = Posted::busy;
  ASSERT_TRUE(world.until([&] {
    put = transport.put(world[0].link(1), source.data(), remote, bytes, 7);
    return put != Posted::busy;
  }));
  if (put == Posted::pending) {
    EXPECT_EQ(transport.send(world[0].link(1), "x", 1, nullptr, 0), Posted::busy);
    ASSERT_TRUE(world.until([&] { return world[0].completed.contains(7); }));
  }
  ASSERT_TRUE(world.until([&] {
    return transport.get(world[0].link(1), back.data(), remote, bytes, 8) == Posted::pending;
  }));
  ASSERT_TRUE(world.until([&] { return world[0].completed.contains(8); }));
  EXPECT_EQ(back, source);
  if (bytes > 5000) {
    EXPECT_EQ(transport.put_notified(world[0].link(1), source.data(), remote, bytes, 9, 1),
              Posted::unnotified);
  }
  EXPECT_EQ(transport.in_use().transfers, 0u);
  world[1].transport->release_cached(remote);
}

TEST(Put, is_there_before_a_later_message) {
  for (const ReceiveMode mode :
       {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring, ReceiveMode::mixed}) {
    Faults faults;
    faults.split_writes = true;
    faults.jitter = 0.5;
    Model model;
    model.message_mb = 1;
    World world(2, small_settings(mode), model, faults);
    world.start();
    ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
    std::vector<std::byte> target(4000000);
    const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
    unsigned seen = 0;
    std::vector<std::byte> source;
    world[1].on_receive = [&](Rank) {
      ++seen;
      EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin())) << seen;
    };
    unsigned n = 0;
    for (const std::size_t bytes : {10u, 300u, 2000u, 70000u, 4000000u, 128u}) {
      source = pattern(bytes, ++n);
      const Posted put = world[0].transport->put(world[0].link(1), source.data(), remote, bytes, n);
      ASSERT_NE(put, Posted::busy);
      ASSERT_TRUE(world.until([&] { return world[0].try_send(1, "fin") == Posted::done; }));
      ASSERT_TRUE(world.until([&] { return seen == n; }));
      ASSERT_TRUE(
          world.until([&] { return put == Posted::done || world[0].completed.contains(n); }));
    }
    world[1].transport->release_cached(remote);
  }
}

// More of them than a window holds, between messages: told once each, in order with the messages.
TEST(Put, with_a_notice_tells_its_target) {
  for (const ReceiveMode mode :
       {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring, ReceiveMode::mixed}) {
    World world(2, small_settings(mode));
    world.start();
    ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
    constexpr std::uint32_t count = 60;
    constexpr std::size_t bytes = 3000;
    std::vector<std::byte> target(count * bytes);
    const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
    const std::vector<std::byte> source = pattern(target.size(), 5);
    std::uint32_t put = 0, sent = 0;
    world[1].on_receive = [&](Rank) {
      EXPECT_EQ(world[1].notifications.size(), world[1].received[0].size());
    };
    ASSERT_TRUE(world.until([&] {
      if (put < count && put == sent) {
        const RemoteMemory part{remote.address + put * bytes, remote.key};
        const std::size_t length = put % 3 == 0 ? 40 : put % 3 == 1 ? 700 : bytes;
        const Posted posted = world[0].transport->put_notified(
            world[0].link(1), source.data() + put * bytes, part, length, put,
            (1u << engine::notification_bits) - 1 - put);
        put += posted == Posted::busy ? 0 : 1;
      }
      if (sent < put && world[0].try_send(1, "x") == Posted::done) ++sent;
      return world[1].received[0].size() == count;
    }));
    ASSERT_EQ(world[1].notifications.size(), count);
    for (std::uint32_t n = 0; n < count; ++n) {
      const std::size_t length = n % 3 == 0 ? 40 : n % 3 == 1 ? 700 : bytes;
      EXPECT_EQ(world[1].notifications[n].notification, (1u << engine::notification_bits) - 1 - n);
      EXPECT_EQ(world[1].notifications[n].bytes, length);
      EXPECT_TRUE(std::equal(source.begin() + static_cast<std::ptrdiff_t>(n * bytes),
                             source.begin() + static_cast<std::ptrdiff_t>(n * bytes + length),
                             target.begin() + static_cast<std::ptrdiff_t>(n * bytes)));
    }
    ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }));
    world[1].transport->release_cached(remote);
  }
}

TEST(Put, with_a_notice_takes_a_place_in_the_window) {
  World world(2, small_settings(ReceiveMode::credit)); // a window of 8, a send queue of 16
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::vector<std::byte> target(64);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  const std::uint64_t source = 1;
  int accepted = 0;
  world.until(
      [&] {
        accepted += world[0].transport->put_notified(world[0].link(1), &source, remote,
                                                     sizeof source, 1, 1) == Posted::busy
                        ? 0
                        : 1;
        return false;
      },
      100, 1);
  EXPECT_EQ(accepted, 8);
  world[1].transport->release_cached(remote);
}

TEST(Put, a_full_queue_is_busy_and_goes_on) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  std::vector<std::byte> target(64 * 4096);
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  const std::vector<std::byte> source = pattern(target.size(), 3);
  bool busy = false;
  std::uint64_t posted = 0;
  ASSERT_TRUE(world.until([&] {
    while (posted < 64) {
      const RemoteMemory part{remote.address + posted * 4096, remote.key};
      const Posted put = world[0].transport->put(world[0].link(1), source.data() + posted * 4096,
                                                 part, 4096, posted);
      busy = busy || put == Posted::busy;
      if (put == Posted::busy) return false;
      ++posted;
    }
    return world[0].completed.size() == 64;
  }));
  EXPECT_TRUE(busy);
  EXPECT_EQ(target, source);
  world[1].transport->release_cached(remote);
}

TEST(Get, from_the_heap_needs_no_registration) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  constexpr std::size_t bytes = 50000;
  auto* const there = static_cast<std::byte*>(world[1].transport->allocate(bytes));
  auto* const here = static_cast<std::byte*>(world[0].transport->allocate(bytes));
  const std::vector<std::byte> source = pattern(bytes, 9);
  std::copy(source.begin(), source.end(), there);
  const RemoteMemory remote = world[1].transport->register_cached(there, bytes);
  ASSERT_EQ(world[0].transport->get(world[0].link(1), here, remote, bytes, 1), Posted::pending);
  ASSERT_TRUE(world.until([&] { return world[0].completed.contains(1); }));
  EXPECT_TRUE(std::equal(source.begin(), source.end(), here));
  EXPECT_EQ(world[0].counter("registrations") + world[1].counter("registrations"), 0u);
  world[1].transport->release_cached(remote);
  world[1].transport->free(there);
  world[0].transport->free(here);
}

// Neither what the device said of the very first arena is lost, nor the limit; and what was
// refused is had once there is room.
TEST(Allocate, says_why_not) {
  Model model;
  model.regions = 20;
  World world(1, small_settings(), model);
  world.start();
  RdmaTransport& transport = *world[0].transport;
  std::byte some{};
  std::vector<std::unique_ptr<MemoryRegion>> others; // have taken what there was
  while (world[0].device.regions.count() < 20)
    others.push_back(world[0].device.register_memory(&some, 1, Access::local));
  const auto expect_said = [&](const std::vector<std::string>& texts) {
    const std::string said = transport.why_not_allocated();
    for (const std::string& text : texts)
      EXPECT_NE(said.find(text), std::string::npos) << said << "\nlacks: " << text;
  };
  const std::string device = world[0].device.name();
  EXPECT_EQ(transport.allocate(128), nullptr);
  expect_said({device, "all 20 memory regions", "give some back"});
  others.clear();
  EXPECT_EQ(transport.allocate(std::size_t{1} << 30), nullptr);
  expect_said({device, "1073741824 more", "268435456", "MPI_Win_free"});
  void* const memory = transport.allocate(128);
  EXPECT_NE(memory, nullptr);
  transport.free(memory);
}

// Neither needs a step of the other process.
TEST(Permits, are_used_or_revoked) {
  World world(2);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1) && world[1].up(0); }));
  RdmaTransport& issuer = *world[0].transport;
  RdmaTransport& user = *world[1].transport;
  const auto revoked = [&](std::uint64_t permit) {
    auto known = engine::Revoked::unknown;
    EXPECT_TRUE(world.until(
        [&] {
          known = issuer.revoke(world[0].link(1), permit);
          return known != engine::Revoked::unknown;
        },
        20000, 1));
    return known;
  };
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t open = issuer.issue(world[0].link(1));
    const std::uint64_t used = issuer.issue(world[0].link(1));
    const std::uint64_t late = issuer.issue(world[0].link(1));
    ASSERT_NE(late, 0u);
    EXPECT_TRUE(user.use(world[1].link(0), used));
    EXPECT_EQ(revoked(used), engine::Revoked::no);
    EXPECT_EQ(revoked(late), engine::Revoked::yes);
    EXPECT_FALSE(user.use(world[1].link(0), late));
    EXPECT_TRUE(user.use(world[1].link(0), open));
    for (const std::uint64_t permit : {open, used, late})
      issuer.discard(world[0].link(1), permit);
    EXPECT_FALSE(user.use(world[1].link(0), late)); // its word may be another's now
  }
  std::vector<std::uint64_t> all;
  while (const std::uint64_t permit = issuer.issue(world[0].link(0)))
    all.push_back(permit);
  EXPECT_GE(all.size(), 8u);
  EXPECT_TRUE(issuer.use(world[0].link(0), all[0])); // of oneself
  EXPECT_EQ(issuer.revoke(world[0].link(0), all[0]), engine::Revoked::no);
  EXPECT_EQ(issuer.revoke(world[0].link(0), all[1]), engine::Revoked::yes);
  EXPECT_FALSE(issuer.use(world[0].link(0), all[1]));
}

} // namespace
} // namespace macadam::test
