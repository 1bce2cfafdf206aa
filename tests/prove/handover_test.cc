// SPDX-License-Identifier: BSD-3-Clause
// The hand-over between the shared queue and the rings: three transports in one thread, which send,
// find no room, poll and lose their ring to each other in an order that follows from a seed. Each
// pair's messages must come in order, and all must come as long as everyone polls.
#include "../unit/shm/endpoint.h"

#include <random>

namespace macadam::net::shm::test {
namespace {

constexpr Rank ranks = 3;

class HandOver {
 public:
  explicit HandOver(std::uint64_t seed) : random_(seed), job_(ranks, ranks, 1 << 24) {
    settings_.shm_eager = 8 << 10; // eight of the longest fill a queue
    settings_.shm_queue = 0;       // the smallest that is possible
    settings_.shm_ring = 0;
    settings_.shm_rings = 1;
    settings_.shm_ring_after = pick(2) + 1;
    for (Rank rank = 0; rank < ranks; ++rank)
      views_.push_back(std::make_unique<Job::View>(job_, rank));
    for (Rank rank = 0; rank < ranks; ++rank) {
      endpoints_.push_back(std::make_unique<Endpoint>(*views_[rank], settings_));
      endpoints_[rank]->on_message_do = [this, rank](Rank source, const std::byte* message,
                                                     std::size_t bytes) {
        std::uint32_t head[2];
        ASSERT_GE(bytes, sizeof head);
        std::memcpy(head, message, sizeof head);
        ASSERT_EQ(head[0], received_[source][rank]++) << source << " to " << rank;
        ASSERT_EQ(head[1], bytes) << source << " to " << rank;
        if (pick(3) == 0) send(rank, source);
      };
    }
  }

  void run() {
    // Few senders for a while, then others: rings are wanted by those who have none.
    for (int phase = 0; phase < 6; ++phase) {
      const auto target = static_cast<Rank>(pick(ranks));
      const auto source = static_cast<Rank>((target + 1 + static_cast<Rank>(pick(2))) % ranks);
      const bool lazy = pick(2) == 0; // who does not poll lets queues fill up
      for (int step = 0; step < 150; ++step) {
        switch (pick(lazy ? 40 : 5)) {
        case 0:
        case 1:
          poll(static_cast<Rank>(pick(ranks)));
          break;
        case 2:
          send(static_cast<Rank>(pick(ranks)), static_cast<Rank>(pick(ranks)));
          break;
        default:
          send(source, target);
        }
      }
    }
    for (int rest = 0; rest < 200; ++rest) {
      for (Rank rank = 0; rank < ranks; ++rank)
        poll(rank);
    }
    for (Rank source = 0; source < ranks; ++source) {
      for (Rank target = 0; target < ranks; ++target)
        ASSERT_EQ(received_[source][target], sent_[source][target]) << source << " to " << target;
    }
  }

  std::uint64_t counter(const char* name) const {
    std::uint64_t sum = 0;
    for (const auto& endpoint : endpoints_)
      sum += endpoint->counter(name);
    return sum;
  }

 private:
  int pick(int of) { return static_cast<int>(random_() % static_cast<unsigned>(of)); }
  void poll(Rank rank) { endpoints_[rank]->transport().poll(*endpoints_[rank]); }
  void send(Rank source, Rank target) {
    std::vector<std::byte> message(pick(2) == 0 ? 8u << 10 : 8u + static_cast<unsigned>(pick(200)));
    const std::uint32_t head[2] = {sent_[source][target],
                                   static_cast<std::uint32_t>(message.size())};
    std::memcpy(message.data(), head, sizeof head);
    if (endpoints_[source]->try_send(target, message.data(), message.size()) == Posted::done)
      ++sent_[source][target];
  }

  std::mt19937_64 random_;
  Job job_;
  base::Settings settings_;
  std::vector<std::unique_ptr<Job::View>> views_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::uint32_t sent_[ranks][ranks] = {};
  std::uint32_t received_[ranks][ranks] = {};
};

TEST(HandOver, KeepsEveryMessageAndItsOrder) {
  std::uint64_t granted = 0, revoked = 0, busy = 0, by_mailbox = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    HandOver run(seed);
    run.run();
    if (HasFatalFailure()) return;
    granted += run.counter("rings_granted");
    revoked += run.counter("rings_revoked");
    busy += run.counter("busy");
    by_mailbox += run.counter("sent_by_mailbox");
  }
  EXPECT_GT(granted, 1000u);
  EXPECT_GT(revoked, 1000u);
  EXPECT_GT(busy, 10000u);
  EXPECT_GT(by_mailbox, 1000u);
}

} // namespace
} // namespace macadam::net::shm::test
