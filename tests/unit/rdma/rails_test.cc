// SPDX-License-Identifier: BSD-3-Clause
// Two ports for one process: long puts and gets go by both, half each.
#include "world.h"

namespace macadam::test {
namespace {

using engine::RemoteMemory;

constexpr std::size_t long_bytes = 1'000'000;

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>((i * 7 + i / 251 + seed) & 255);
  return data;
}

// A job of which the first `with_two` ranks have a second port.
class Rails : public World {
 public:
  explicit Rails(Rank size, Rank with_two, const Settings& settings = small_settings(),
                 const Model& model = {}, const Faults& faults = {}, std::uint64_t seed = 1)
      : World(size, settings, model, faults, seed) {
    for (Rank rank = 0; rank < with_two; ++rank) {
      seconds.push_back(std::make_unique<sim::SimulatedDevice>(fabric, (*this)[rank].processor));
      seconds.back()->stand_beside((*this)[rank].device);
    }
  }
  Rails(const Rails&) = delete;
  Rails& operator=(const Rails&) = delete;
  ~Rails() {
    for (auto& process : processes)
      process->transport.reset(); // before the devices
  }
  Rails& start() {
    for (auto& process : processes) {
      process->processes.emplace(*process);
      process->transport = std::make_unique<RdmaTransport>(
          process->device, *process->processes, process->settings, process->invalidation, nullptr,
          true, process->self < seconds.size() ? seconds[process->self].get() : nullptr);
      process->endpoint = process->transport->endpoint();
    }
    return *this;
  }
  // Both are connected to each other.
  bool connect() {
    return until([&] { return (*this)[0].up(1) && (*this)[1].up(0); });
  }
  // From now on a rank's link is busy for so many bytes.
  void occupy(const sim::SimulatedDevice& from, std::uint64_t bytes) {
    fabric.transmit(from.lid(), processes.back()->device.lid(), bytes);
  }
  Posted move(bool get, std::vector<std::byte>& local, RemoteMemory remote, std::uint64_t cookie,
              std::size_t bytes = long_bytes) {
    RdmaTransport& own = *(*this)[0].transport;
    engine::Link& link = (*this)[0].link(1);
    return get ? own.get(link, local.data(), remote, bytes, cookie)
               : own.put(link, local.data(), remote, bytes, cookie);
  }
  bool completes(std::uint64_t cookie) {
    return until([&] { return (*this)[0].completed.contains(cookie); });
  }

  std::vector<std::unique_ptr<sim::SimulatedDevice>> seconds;
};

struct Memory {
  std::vector<std::byte> own = pattern(long_bytes, 1);
  std::vector<std::byte> target = std::vector<std::byte>(long_bytes);
  RemoteMemory remote;
  explicit Memory(Rails& world)
      : remote(world[1].transport->register_cached(target.data(), target.size())) {}
};

enum class Late { none, first, second };

// Whichever half is there first: what is sent after a put comes after both.
TEST(Rails, a_put_is_there_before_a_later_message) {
  for (const ReceiveMode mode :
       {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring, ReceiveMode::mixed}) {
    for (const Late late : {Late::none, Late::first, Late::second}) {
      SCOPED_TRACE(static_cast<int>(late));
      Rails world(3, 2, small_settings(mode));
      ASSERT_TRUE(world.start().connect());
      Memory memory(world);
      if (late == Late::first) world.occupy(world[0].device, 3'000'000);
      if (late == Late::second) world.occupy(*world.seconds[0], 3'000'000);
      ASSERT_EQ(world.move(false, memory.own, memory.remote, 7), Posted::pending);
      EXPECT_EQ(world[0].counter("split"), 1u);
      EXPECT_EQ(world[0].try_send(1, "FIN"), Posted::busy);
      bool there = false;
      world[1].on_receive = [&](Rank) { there = memory.target == memory.own; };
      ASSERT_TRUE(world.until([&] { return world[0].try_send(1, "FIN") == Posted::done; }));
      // Behind the first half in its queue, so it may go before that has arrived.
      EXPECT_EQ(world[0].completed.contains(7), late != Late::first);
      ASSERT_TRUE(world.until([&] { return !world[1].received[0].empty(); }));
      EXPECT_TRUE(there);
      ASSERT_TRUE(world.completes(7));
      EXPECT_TRUE(world[0].completed[7]);
      world[1].transport->release_cached(memory.remote);
    }
  }
}

TEST(Rails, a_get_is_complete_once_both_halves_are_and_holds_up_no_message) {
  for (const Late late : {Late::none, Late::first, Late::second}) {
    SCOPED_TRACE(static_cast<int>(late));
    Rails world(3, 2);
    ASSERT_TRUE(world.start().connect());
    Memory memory(world);
    std::ranges::copy(pattern(long_bytes, 3), memory.target.begin()); // where it is registered
    std::fill(memory.own.begin(), memory.own.end(), std::byte{0});
    if (late == Late::first) world.occupy(world[1].device, 3'000'000);
    if (late == Late::second) world.occupy(*world.seconds[1], 3'000'000);
    ASSERT_EQ(world.move(true, memory.own, memory.remote, 7), Posted::pending);
    EXPECT_EQ(world[0].counter("split"), 1u);
    EXPECT_EQ(world[0].try_send(1, "not about that"), Posted::done);
    EXPECT_FALSE(world[0].transport->drain());
    ASSERT_TRUE(world.completes(7));
    EXPECT_EQ(memory.own, memory.target);
    world[1].transport->release_cached(memory.remote);
  }
}

// Two ports take half the time of one.
TEST(Rails, are_faster_for_long_data_and_unused_for_short) {
  const auto seconds_of = [](Rank with_two, bool get, std::size_t bytes) {
    Rails world(2, with_two);
    EXPECT_TRUE(world.start().connect());
    Memory memory(world);
    const RemoteMemory own = world[0].transport->register_cached(memory.own.data(), long_bytes);
    const double start = world[0].device.now();
    EXPECT_EQ(world.move(get, memory.own, memory.remote, 1, bytes), Posted::pending);
    EXPECT_TRUE(world.completes(1));
    const double took = world[0].device.now() - start;
    EXPECT_EQ(world[0].counter("split"), with_two == 2 && bytes == long_bytes ? 1u : 0u);
    world[0].transport->release_cached(own);
    world[1].transport->release_cached(memory.remote);
    return took;
  };
  for (const bool get : {false, true}) {
    EXPECT_LT(seconds_of(2, get, long_bytes), 0.52 * seconds_of(0, get, long_bytes));
    EXPECT_EQ(seconds_of(2, get, 8000), seconds_of(0, get, 8000));
  }
}

// It goes by the first port alone where the other side has no second one, or ours has no queue pair
// left.
TEST(Rails, need_a_queue_pair_at_both_ends) {
  for (const bool exhausted : {false, true}) {
    for (const bool other_side : {false, true}) {
      Model model;
      model.queue_pairs = 4;
      Rails world(2, exhausted ? 2 : 1, small_settings(), model);
      std::vector<std::unique_ptr<QueuePair>> taken;
      std::unique_ptr<CompletionQueue> queue;
      if (exhausted) {
        sim::SimulatedDevice& full = *world.seconds[other_side ? 1 : 0];
        queue = full.make_completion_queue(16, false);
        for (int i = 0; i < 4; ++i)
          taken.push_back(full.make_queue_pair({.sends = queue.get(),
                                                .receives = queue.get(),
                                                .send_depth = 1,
                                                .receive_depth = 1}));
      }
      // Whoever asks.
      world.start();
      ASSERT_TRUE(world.until([&] { return world[other_side ? 1 : 0].up(other_side ? 0 : 1); }));
      ASSERT_TRUE(world.connect());
      Memory memory(world);
      for (const bool get : {false, true}) {
        ASSERT_EQ(world.move(get, memory.own, memory.remote, get ? 2 : 1), Posted::pending);
        ASSERT_TRUE(world.completes(get ? 2 : 1));
        EXPECT_EQ(memory.own, memory.target);
      }
      EXPECT_EQ(world[0].counter("split"), 0u);
      for (auto& second : world.seconds)
        EXPECT_EQ(second->queue_pair_count(),
                  exhausted && second == world.seconds[other_side ? 1 : 0] ? 4u : 0u);
      world[1].transport->release_cached(memory.remote);
      taken.clear();
    }
  }
}

TEST(Rails, fail_as_one) {
  for (const bool get : {false, true}) {
    for (const bool first_fails : {false, true}) {
      Rails world(3, 2);
      ASSERT_TRUE(world.start().connect());
      Memory memory(world);
      RemoteMemory wrong = memory.remote; // the peer refuses that half
      wrong.key ^= first_fails ? 0x4000u : std::uint64_t{0x4000} << 32;
      ASSERT_EQ(world.move(get, memory.own, wrong, 1), Posted::pending);
      ASSERT_EQ(world.move(get, memory.own, memory.remote, 2), Posted::pending);
      EXPECT_EQ(world[0].counter("split"), 2u);
      // Until the queue pairs are gone they may still use the memory.
      world[0].on_failed_operation = [&] {
        EXPECT_EQ(world.seconds[0]->queue_pair_count(), 0u);
        EXPECT_EQ(world[0].transport->connections(), 0u);
      };
      ASSERT_TRUE(world.until([&] {
        return world[0].states[1] == engine::PeerState::failed &&
               world[1].states[0] == engine::PeerState::failed;
      }));
      world.run();
      EXPECT_EQ(world[0].completed, (std::map<std::uint64_t, bool>{{1, false}, {2, false}}));
      EXPECT_EQ(world[0].transport->in_use().transfers, 0u);
      EXPECT_EQ(world[0].transport->in_use().registrations, 0u);
      EXPECT_EQ(world.seconds[1]->queue_pair_count(), 0u);
      world[1].transport->release_cached(memory.remote);
    }
  }
}

TEST(Rails, of_which_one_is_lost_for_good_end_all_connections) {
  Rails world(2, 2);
  ASSERT_TRUE(world.start().connect());
  world.seconds[1]->lose("the cable is cut");
  ASSERT_TRUE(world.until([&] {
    return world[0].states[1] == engine::PeerState::failed &&
           world[1].states[0] == engine::PeerState::failed;
  }));
  EXPECT_NE(world[1].transport->fallbacks().back().find("the cable is cut"), std::string::npos);
}

TEST(Rails, leave_nothing_at_an_end_in_the_middle) {
  for (const bool get : {false, true}) {
    Rails world(2, 2);
    ASSERT_TRUE(world.start().connect());
    Memory memory(world);
    ASSERT_EQ(world.move(get, memory.own, memory.remote, 1), Posted::pending);
    world[0].transport.reset();
    for (const sim::SimulatedDevice* device : {&world[0].device, world.seconds[0].get()}) {
      EXPECT_EQ(device->regions.count(), 0u);
      EXPECT_EQ(device->queue_pair_count(), 0u);
    }
    world[1].transport->release_cached(memory.remote);
  }
}

TEST(Rails, take_data_longer_than_a_request) {
  Model model;
  model.message_mb = 1;
  Rails world(2, 2, small_settings(), model);
  ASSERT_TRUE(world.start().connect());
  std::vector<std::byte> own = pattern(7'654'321, 5), target(own.size());
  const RemoteMemory remote = world[1].transport->register_cached(target.data(), target.size());
  for (const bool get : {false, true}) {
    ASSERT_EQ(world.move(get, own, remote, get ? 2 : 1, own.size()), Posted::pending);
    ASSERT_TRUE(world.completes(get ? 2 : 1));
    ASSERT_EQ(own, target);
    std::ranges::copy(pattern(own.size(), 6), target.begin());
  }
  EXPECT_EQ(world[0].counter("split"), 2u);
  world[1].transport->release_cached(remote);
}

// A wait that sleeps is ended by whichever half comes last.
TEST(Rails, end_a_sleep) {
  for (const Late late : {Late::first, Late::second}) {
    Settings settings = small_settings();
    settings.spin = 0;
    Rails world(3, 2, settings);
    ASSERT_TRUE(world.start().connect());
    Memory memory(world);
    constexpr std::uint64_t busy = 50'000'000; // bytes, and nanoseconds
    world.occupy(late == Late::first ? world[0].device : *world.seconds[0], busy);
    ASSERT_EQ(world.move(false, memory.own, memory.remote, 1), Posted::pending);
    const double start = world[0].device.now();
    for (unsigned fruitless = 0; !world[0].completed.contains(1); ++fruitless) {
      if (world[0].transport->poll(world[0])) continue;
      ASSERT_LT(fruitless, 1000u);
      world[0].transport->idle(fruitless, 10'000'000);
    }
    EXPECT_GT(world[0].device.counters().sleeps, 0u);
    EXPECT_NEAR(world[0].device.now() - start, 1e-9 * (busy + long_bytes / 2), 2e-4);
    world[1].transport->release_cached(memory.remote);
  }
}

// A put with a notification is a write and a message: the engine's to send.
TEST(Rails, split_no_put_that_tells_of_itself) {
  Rails world(2, 2);
  ASSERT_TRUE(world.start().connect());
  Memory memory(world);
  RdmaTransport& own = *world[0].transport;
  const auto put = [&](std::size_t bytes) {
    return own.put_notified(world[0].link(1), memory.own.data(), memory.remote, bytes, bytes, 5);
  };
  EXPECT_EQ(put(long_bytes), Posted::unnotified);
  EXPECT_TRUE(world[0].completed.empty());
  EXPECT_EQ(put(5000), Posted::pending);
  ASSERT_TRUE(world.until([&] { return world[1].notifications.size() == 1; }));
  EXPECT_EQ(world[1].notifications[0].bytes, 5000u);
  // It must not pass one that is split.
  ASSERT_EQ(world.move(false, memory.own, memory.remote, 1), Posted::pending);
  EXPECT_EQ(put(5000), Posted::busy);
  ASSERT_TRUE(world.completes(1));
  world[1].transport->release_cached(memory.remote);
}

// One-sided access: what is written or read later finds what was written before, in any order of
// lengths and whichever port is late.
TEST(Rails, keep_the_order_of_writes_and_reads) {
  for (const Late late : {Late::none, Late::first, Late::second}) {
    Rails world(3, 2);
    ASSERT_TRUE(world.start().connect());
    std::vector<std::byte> target(long_bytes);
    RdmaTransport& own = *world[0].transport;
    const RemoteMemory remote = world[1].transport->register_region(target.data(), target.size());
    std::uint64_t cookie = 0;
    const auto do_it = [&](bool get, std::vector<std::byte>& with, RemoteMemory where) {
      const std::uint64_t mine = ++cookie;
      if (late == Late::first) world.occupy(world[0].device, 1'000'000);
      if (late == Late::second) world.occupy(*world.seconds[0], 1'000'000);
      return world.until([&] {
        const Posted posted =
            get ? own.read(world[0].link(1), with.data(), where, with.size(), mine)
                : own.write(world[0].link(1), with.data(), where, with.size(), mine);
        if (posted == Posted::done) world[0].completed[mine] = true;
        return posted != Posted::busy;
      });
    };
    std::vector<std::byte> expected(long_bytes);
    for (unsigned round = 0; round < 6; ++round) {
      // A few bytes in the second half, all, a few elsewhere there, and all are read.
      const RemoteMemory here{remote.address + 600'000, remote.key};
      const RemoteMemory there{remote.address + 900'000, remote.key};
      auto before = pattern(100, round), all = pattern(long_bytes, round + 10),
           after = pattern(round % 2 == 0 ? 100 : 5000, round + 20);
      std::vector<std::byte> found(long_bytes);
      ASSERT_TRUE(do_it(false, before, here));
      ASSERT_TRUE(do_it(false, all, remote));
      ASSERT_TRUE(do_it(false, after, there));
      ASSERT_TRUE(do_it(true, found, remote));
      ASSERT_TRUE(world.until([&] { return world[0].completed.size() == cookie; }));
      expected = all;
      std::copy(after.begin(), after.end(), expected.begin() + 900'000);
      ASSERT_TRUE(found == expected) << "round " << round;
      ASSERT_TRUE(target == expected) << "round " << round;
    }
    EXPECT_EQ(world[0].counter("split"), 12u); // each long one
    world[1].transport->deregister_region(remote);
  }
}

TEST(Rails, give_keys_that_are_given_back) {
  Rails world(2, 2);
  world.start();
  RdmaTransport& own = *world[0].transport;
  std::vector<std::byte> memory(100'000);
  void* const heap = own.allocate(100'000);
  const std::size_t regions = world.seconds[0]->regions.count();
  const RemoteMemory of_heap = own.register_cached(heap, 100'000);
  const RemoteMemory of_user = own.register_cached(memory.data(), memory.size());
  EXPECT_NE(of_heap.key >> 32, 0u);
  EXPECT_NE(of_user.key >> 32, 0u);
  EXPECT_EQ(world.seconds[0]->regions.count(), regions + 1);
  own.release_cached(of_heap);
  own.release_cached(of_user);
  EXPECT_EQ(own.in_use().registrations, 0u);
  EXPECT_DEATH(own.release_cached(of_user), "is not in use");
  own.free(heap);
}

// Long and short data and messages at once, on networks that misbehave and break.
TEST(Rails, survive_random_traffic) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Faults faults;
    faults.jitter = 3;
    faults.split_writes = faults.shuffle = true;
    faults.queue_pair_break = seed % 3 == 0 ? 0.003 : 0;
    constexpr ReceiveMode modes[] = {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring,
                                     ReceiveMode::mixed};
    Model model;
    model.orders_writes = model.orders_arrivals = seed % 5 != 0;
    Rails world(3, 3, small_settings(modes[seed % 4]), model, faults, seed);
    world.start();
    std::vector<std::vector<std::byte>> sources, targets;
    std::vector<RemoteMemory> remotes;
    for (Rank rank = 0; rank < 3; ++rank) {
      for (unsigned i = 0; i < 4; ++i) {
        sources.push_back(pattern(20'000 * (i + 1), 4 * rank + i));
        targets.emplace_back(sources.back().size());
      }
    }
    // The k-th vector of each rank is put to the next one, and read back by the one after that.
    for (std::size_t k = 0; k < targets.size(); ++k) {
      RdmaTransport& next = *world[static_cast<Rank>(k / 4 + 1) % 3].transport;
      remotes.push_back(next.register_cached(targets[k].data(), targets[k].size()));
    }
    std::vector<bool> posted(sources.size());
    const auto failed = [&](Rank from, Rank to) {
      return world[from].states.contains(to) && world[from].states[to] == engine::PeerState::failed;
    };
    std::array<Stream, 3> streams = {Stream(world, 0, 1, 30), Stream(world, 1, 2, 30),
                                     Stream(world, 2, 0, 30)};
    ASSERT_TRUE(world.until([&] {
      bool all = true;
      for (Rank rank = 0; rank < 3; ++rank) {
        const Rank to = (rank + 1) % 3;
        if (failed(rank, to) || failed(to, rank)) continue;
        if (!world[rank].up(to)) {
          all = false;
          continue;
        }
        for (std::size_t k = 4 * rank; k < 4 * rank + 4; ++k) {
          if (!posted[k])
            posted[k] =
                world[rank].transport->put(world[rank].link(to), sources[k].data(), remotes[k],
                                           sources[k].size(), k) != Posted::busy;
          all = all && world[rank].completed.contains(k);
        }
        all = streams[rank].push() && streams[rank].arrived() && all;
      }
      return all;
    }));
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const auto from = static_cast<Rank>(k / 4);
      if (const auto found = world[from].completed.find(k);
          found != world[from].completed.end() && found->second) {
        EXPECT_TRUE(targets[k] == sources[k]) << k;
      }
    }
    if (faults.queue_pair_break == 0) {
      for (const Stream& stream : streams)
        stream.check();
    }
    for (std::size_t k = 0; k < remotes.size(); ++k)
      world[static_cast<Rank>(k / 4 + 1) % 3].transport->release_cached(remotes[k]);
    for (auto& process : world.processes)
      process->transport.reset();
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(world.seconds[rank]->queue_pair_count(), 0u);
      EXPECT_EQ(world.seconds[rank]->regions.count(), 0u);
      EXPECT_EQ(world[rank].device.regions.count(), 0u);
    }
  }
}

} // namespace
} // namespace macadam::test
