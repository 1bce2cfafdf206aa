// SPDX-License-Identifier: BSD-3-Clause
// Put and get by every path, between processes.
#include "copies.h"
#include "fake_system.h"

#include <numeric>

namespace macadam::net::shm::test {
namespace {

constexpr std::size_t sizes[] = {0, 1, 7, 64, 1000, 4096, 8191, 8192, 8193, 65536, 300001, most};

std::size_t total_bytes() {
  return std::accumulate(std::begin(sizes), std::end(sizes), std::size_t{0});
}

void own_all_sizes(Endpoint& self, bool mapped) {
  std::vector<std::byte> vector(most + 1);
  std::byte* memory = vector.data();
  if (mapped) memory = static_cast<std::byte*>(self.transport().allocate(most + 1));
  ASSERT_NE(memory, nullptr);
  unsigned round = 0;
  for (const std::size_t bytes : sizes) {
    std::memset(memory, 0, bytes + 1);
    send_note(self, 1, memory, bytes);
    EXPECT_EQ(self.receive(), "put");
    EXPECT_EQ(first_wrong(memory, bytes, ++round), bytes);
    EXPECT_EQ(memory[bytes], std::byte{0}) << "written behind the end";
    fill_pattern(memory, bytes, ++round);
    self.send_text(1, "get");
    EXPECT_EQ(self.receive(), "got");
  }
  if (mapped) self.transport().free(memory);
}

void move_all_sizes(Endpoint& self) {
  std::vector<std::byte> buffer(most + 1);
  unsigned round = 0;
  std::uint64_t cookie = 0;
  engine::Link& link = self.link(0);
  for (const std::size_t bytes : sizes) {
    const RemoteMemory memory = receive_note(self);
    fill_pattern(buffer.data(), bytes, ++round);
    ++cookie;
    EXPECT_TRUE(
        self.finished(self.transport().put(link, buffer.data(), memory, bytes, cookie), cookie));
    std::memset(buffer.data(), 0, buffer.size());
    self.send_text(0, "put");
    EXPECT_EQ(self.receive(), "get");
    ++cookie;
    EXPECT_TRUE(
        self.finished(self.transport().get(link, buffer.data(), memory, bytes, cookie), cookie));
    EXPECT_EQ(first_wrong(buffer.data(), bytes, ++round), bytes);
    EXPECT_EQ(buffer[bytes], std::byte{0}) << "written behind the end";
    self.send_text(0, "got");
  }
}

TEST(Copies, MappedMemory) {
  run_pair(
      {}, Hindrance::none, [](Endpoint& self) { own_all_sizes(self, true); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_mapped"), 2 * total_bytes());
        EXPECT_EQ(self.counter("bytes_cross_copied") + self.counter("bytes_streamed"), 0u);
      });
}

TEST(Copies, CrossMemoryAttach) {
  run_pair(
      with(base::CopyPath::cma), Hindrance::none,
      [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_TRUE(self.transport().fallbacks().empty());
        EXPECT_EQ(self.counter("bytes_cross_copied"), 2 * total_bytes());
        EXPECT_EQ(self.counter("bytes_streamed"), 0u);
      });
}

void pipeline(const base::Settings& settings) {
  run_pair(
      settings, Hindrance::none,
      [](Endpoint& self) {
        own_all_sizes(self, false);
        EXPECT_EQ(self.counter("bytes_streamed"), total_bytes()); // the answers to gets
      },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_streamed"), total_bytes());
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
      });
}

TEST(Copies, PipelineThroughRings) {
  pipeline(with(base::CopyPath::pipeline));
}

TEST(Copies, PipelineThroughTheQueue) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_rings = 0;
  pipeline(settings);
}

TEST(Copies, PipelineThroughTheSmallestQueue) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_eager = 0;
  settings.shm_queue = settings.shm_ring = 0;
  pipeline(settings);
}

TEST(Copies, Automatic) {
  run_pair(
      {}, Hindrance::none, [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) { move_all_sizes(self); });
}

TEST(Copies, WhereAttachIsForbiddenAllIsStreamedAndTheReasonTold) {
  run_pair(
      {}, Hindrance::forbidden, [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_streamed"), total_bytes());
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
        const auto fallbacks = self.transport().fallbacks();
        ASSERT_EQ(fallbacks.size(), 1u);
        EXPECT_NE(fallbacks[0].find("forbids"), std::string::npos) << fallbacks[0];
      });
}

// As of memory of a device, or where a buffer ends early: this transfer, and no other.
TEST(Copies, WhatTheKernelCannotReachIsStreamed) {
  for (const base::CopyPath path : {base::CopyPath::cma, base::CopyPath::automatic})
    run_pair(
        with(path), Hindrance::none, [](Endpoint& self) { own_all_sizes(self, false); },
        [](Endpoint& self) {
          static_cast<void>(self.link(0)); // which looks whether the kernel may copy
          forbid_attach(EFAULT);
          move_all_sizes(self);
          EXPECT_EQ(self.counter("bytes_streamed"), total_bytes());
          EXPECT_TRUE(self.transport().fallbacks().empty());
        });
}

TEST(Copies, AProcessIdOfAnotherNamespaceIsNotTrusted) {
  run_pair(
      with(base::CopyPath::cma), Hindrance::wrong_pids,
      [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
        const auto fallbacks = self.transport().fallbacks();
        ASSERT_EQ(fallbacks.size(), 1u);
        EXPECT_NE(fallbacks[0].find("not the peer"), std::string::npos) << fallbacks[0];
      });
}

// An early receiver's data arrive although it computes.
TEST(Copies, APutReachesATargetThatDoesNotPoll) {
  run_pair(
      {}, Hindrance::none,
      [](Endpoint& self) {
        std::vector<std::byte> memory(100000);
        const std::atomic_ref last(memory.back());
        send_note(self, 1, memory.data(), memory.size());
        const double limit = seconds() + 20;
        while (last.load(std::memory_order_acquire) != std::byte{9} && seconds() < limit) {
        }
        EXPECT_EQ(last.load(), std::byte{9});
      },
      [](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        const std::vector<std::byte> data(100000, std::byte{9});
        EXPECT_EQ(self.transport().put(self.link(0), data.data(), memory, data.size(), 1),
                  Posted::done);
        EXPECT_EQ(self.counter("bytes_cross_copied"), data.size());
      });
}

TEST(Copies, APipelinedPutIsPendingUntilTheTargetPolls) {
  Steps steps;
  run_pair(
      with(base::CopyPath::pipeline), Hindrance::none,
      [&](Endpoint& self) { take_put(self, steps); },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(most);
        fill_pattern(data.data(), most, 1);
        const Posted posted = self.transport().put(self.link(0), data.data(), memory, most, 5);
        EXPECT_EQ(posted, Posted::pending);
        steps.reach(1);
        EXPECT_TRUE(self.finished(posted, 5));
        self.send_text(0, "put");
      });
}

// In memory of every kind, behind puts that are fragments in the ring, copied by the kernel or
// stored.
void notifications_follow_puts(const base::Settings& settings, bool mapped) {
  constexpr unsigned rounds = 50;
  constexpr std::size_t bytes = 200'000;
  run_pair(
      settings, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> vector(bytes + longest_notified_put);
        auto* const memory = mapped
                                 ? static_cast<std::byte*>(self.transport().allocate(bytes + 256))
                                 : vector.data();
        unsigned seen = 0;
        self.on_put_do = [&](Rank source, std::uint32_t notification, std::size_t notified) {
          EXPECT_EQ(source, 1u);
          EXPECT_EQ(notification, ++seen);
          EXPECT_EQ(notified, notification % 2 == 0 ? longest_notified_put : 1u);
          EXPECT_EQ(first_wrong(memory, bytes, notification), bytes);
          EXPECT_EQ(first_wrong(memory + bytes, notified, notification), notified);
          self.send_text(1, "seen");
        };
        send_note(self, 1, memory, bytes + longest_notified_put);
        self.wait([&] { return seen == rounds; });
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        const RemoteMemory behind{memory.address + bytes, memory.key};
        std::vector<std::byte> data(bytes);
        for (unsigned round = 1; round <= rounds; ++round) {
          fill_pattern(data.data(), bytes, round);
          const Posted posted =
              self.transport().put(self.link(0), data.data(), memory, bytes, round);
          const std::size_t notified = round % 2 == 0 ? longest_notified_put : 1;
          self.wait([&] {
            return self.transport().put_notified(self.link(0), data.data(), behind, notified, 0,
                                                 round) == Posted::done;
          });
          EXPECT_TRUE(self.finished(posted, round));
          EXPECT_EQ(self.receive(), "seen");
        }
      });
}

// Without an act of the target: as many as there are chunks for, each at once or not at all.
TEST(Copies, PutsAtOnceWaitInTheSegmentUntilTheTargetPolls) {
  constexpr std::size_t bytes = 64 << 10, places = 64;
  base::Settings settings;
  settings.shm_ring_after = 1;
  Steps steps;
  run_pair(
      settings, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(places * bytes);
        std::uint32_t seen = 0;
        self.on_put_do = [&](Rank, std::uint32_t notification, std::size_t notified) {
          EXPECT_EQ(notification, ++seen);
          EXPECT_EQ(notified, bytes);
          EXPECT_EQ(first_wrong(memory.data() + (seen - 1) * bytes, bytes, seen), bytes);
        };
        send_note(self, 1, memory.data(), memory.size());
        while (self.receive() != "in a ring")
          self.send_text(1, "again");
        steps.reach(1);
        steps.await(2); // does not poll
        const auto put = static_cast<std::uint32_t>(std::stoul(self.receive()));
        EXPECT_EQ(seen, put); // what came before the message is there before it
        self.send_text(1, "read");
        EXPECT_EQ(self.receive(), "the end");
        EXPECT_EQ(seen, put + 1);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(bytes + 1);
        std::uint32_t put = 0;
        const auto put_next = [&](std::size_t length) {
          fill_pattern(data.data(), length, put + 1);
          const RemoteMemory place{memory.address + put * bytes, memory.key};
          return self.transport().put_at_once(self.link(0), data.data(), place, length, put + 1);
        };
        EXPECT_EQ(put_next(bytes), Posted::busy); // through the queue others write as well
        while (self.counter("sent_by_ring") == 0) {
          self.send_text(0, "not yet");
          EXPECT_EQ(self.receive(), "again");
        }
        self.send_text(0, "in a ring");
        steps.await(1);
        EXPECT_EQ(put_next(bytes + 1), Posted::busy);
        while (put < places && put_next(bytes) == Posted::done)
          ++put;
        EXPECT_GE(put, 8u);
        EXPECT_LT(put, places);
        EXPECT_EQ(self.counter("bytes_streamed"), put * bytes);
        self.send_text(0, std::to_string(put));
        steps.reach(2);
        EXPECT_EQ(self.receive(), "read");
        EXPECT_EQ(put_next(bytes), Posted::done); // there is room again
        self.send_text(0, "the end");
      });
}

// In place before the target polls, which then is told, in order with messages.
TEST(Copies, PutsAtOnceGoStraightToMappedMemory) {
  constexpr std::size_t bytes = 200'000, places = 3; // more than a chunk holds
  Steps steps;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        auto* const memory = static_cast<std::byte*>(self.transport().allocate(places * bytes));
        std::uint32_t seen = 0;
        self.on_put_do = [&](Rank, std::uint32_t notification, std::size_t notified) {
          EXPECT_EQ(notification, ++seen);
          EXPECT_EQ(notified, bytes);
        };
        send_note(self, 1, memory, places * bytes);
        steps.await(1); // does not poll
        for (std::uint32_t place = 0; place < places; ++place)
          EXPECT_EQ(first_wrong(memory + place * bytes, bytes, place + 1), bytes);
        EXPECT_EQ(seen, 0u);
        EXPECT_EQ(self.receive(), "put");
        EXPECT_EQ(seen, places);
        self.transport().free(memory);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(bytes);
        for (std::uint32_t place = 0; place < places; ++place) {
          fill_pattern(data.data(), bytes, place + 1);
          const RemoteMemory there{memory.address + place * bytes, memory.key};
          EXPECT_EQ(
              self.transport().put_at_once(self.link(0), data.data(), there, bytes, place + 1),
              Posted::done);
        }
        self.send_text(0, "put");
        EXPECT_EQ(self.counter("bytes_mapped"), places * bytes);
        steps.reach(1);
      });
}

TEST(Copies, NotificationsFollowPutsByTheKernel) {
  notifications_follow_puts(with(base::CopyPath::cma), false);
}

TEST(Copies, NotificationsFollowStreamsThroughRings) {
  notifications_follow_puts(with(base::CopyPath::pipeline), false);
}

TEST(Copies, NotificationsFollowStreamsThroughTheQueue) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_rings = 0;
  notifications_follow_puts(settings, false);
}

TEST(Copies, NotificationsFollowPutsToMappedMemory) {
  notifications_follow_puts({}, true);
}

// Whether a process of a machine on which copies by the kernel take so many times as long as its
// own takes them to be fast.
bool is_direct_fast(double cost, base::CopyPath path) {
  class Copying final : public FakeSystem {
   public:
    double cost = 1;
    [[nodiscard]] double kernel_copy_cost() noexcept override { return cost; }
  } machine;
  machine.cost = cost;
  base::Settings settings;
  settings.shm_copy = path;
  Job job(1);
  Job::View view(job, 0);
  const boot::Processes processes(view);
  Transport transport(processes, settings, machine);
  return transport.is_direct_fast();
}

TEST(KernelCopies, AreForCollectivesWhereTheyAreFast) {
  EXPECT_TRUE(is_direct_fast(2, base::CopyPath::automatic));
  EXPECT_FALSE(is_direct_fast(20, base::CopyPath::automatic));
  EXPECT_TRUE(is_direct_fast(20, base::CopyPath::cma)); // the user says so
}

TEST(KernelCopies, AreMeasuredOnce) {
  const double cost = real_system().kernel_copy_cost();
  EXPECT_GT(cost, 0);
  EXPECT_EQ(real_system().kernel_copy_cost(), cost);
}

} // namespace
} // namespace macadam::net::shm::test
