// SPDX-License-Identifier: BSD-3-Clause
// Messages through the whole transport, ranks as threads: order, every length, rings that come and
// go, messages to oneself.
#include "endpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <random>

namespace macadam::net::shm::test {
namespace {

// A message that says who sent it as which, with a body that a receiver can check.
std::vector<std::uint32_t> make_message(Rank source, std::uint32_t number, std::size_t words) {
  std::vector<std::uint32_t> message(words + 3);
  message[0] = source;
  message[1] = number;
  message[2] = static_cast<std::uint32_t>(words);
  for (std::size_t i = 0; i < words; ++i)
    message[i + 3] = number / 5 + static_cast<std::uint32_t>(i % 3);
  return message;
}

// Checks that each source's messages come in order and whole.
class Checker {
 public:
  void operator()(Rank source, const std::byte* message, std::size_t bytes) {
    ASSERT_GE(bytes, 12u);
    std::uint32_t head[3];
    std::memcpy(head, message, sizeof head);
    ASSERT_EQ(head[0], source);
    ASSERT_EQ(head[1], next_[source]++);
    const auto expected = make_message(source, head[1], head[2]);
    ASSERT_EQ(bytes, expected.size() * 4);
    ASSERT_EQ(std::memcmp(message, expected.data(), bytes), 0);
  }

 private:
  std::map<Rank, std::uint32_t> next_;
};

void send_number(Endpoint& endpoint, Rank self, Rank peer, std::uint32_t number,
                 std::size_t words) {
  const auto message = make_message(self, number, words);
  endpoint.send(peer, message.data(), message.size() * 4);
}

base::Settings small_settings() {
  base::Settings settings;
  settings.shm_eager = 2048;
  settings.shm_queue = 0; // the smallest that is possible
  settings.shm_ring = 0;
  settings.shm_ring_after = 4;
  return settings;
}

TEST(Messages, AJobOfOneTalksToItself) {
  Job job(1);
  const base::Settings settings = small_settings();
  run_threads(job, settings, [](Endpoint& self, Rank) {
    Checker check;
    self.on_message_do = std::ref(check);
    for (std::uint32_t i = 0; i < 1000; ++i)
      send_number(self, 0, 0, i, i % 500);
    self.wait_messages(1000);
    EXPECT_EQ(self.counter("rings_granted"), 0u);
  });
}

TEST(Messages, AFullQueueIsBusyUntilItIsRead) {
  Job job(1);
  run_threads(job, small_settings(), [](Endpoint& self, Rank) {
    const std::vector<std::byte> data(1000);
    std::uint64_t sent = 0;
    while (self.try_send(0, data.data(), data.size()) == Posted::done)
      ++sent;
    EXPECT_GE(sent, 4u);
    EXPECT_EQ(self.try_send(0, data.data(), data.size()), Posted::busy);
    self.wait_messages(sent);
    EXPECT_EQ(self.try_send(0, data.data(), data.size()), Posted::done);
    self.wait_messages(sent + 1);
  });
}

TEST(Messages, TheLongestFitsOneByteMoreIsRefused) {
  Job job(2);
  run_threads(job, small_settings(), [](Endpoint& self, Rank rank) {
    const std::size_t longest = self.transport().limits().message;
    EXPECT_EQ(longest, 2048u + 64);
    std::vector<std::byte> data(longest + 1);
    for (int i = 0; i < 100; ++i)
      self.send(1 - rank, data.data(), longest);
    self.wait_messages(100);
  });
  Job::View view(job, 0);
  Endpoint alone(view, small_settings());
  const std::vector<std::byte> data(alone.transport().limits().message + 1);
  EXPECT_DEATH(alone.send(1, data.data(), data.size()), "at most [0-9]+ are taken");
}

// All ranks to all ranks, oneself included, in random order and lengths.
void all_to_all(const base::Settings& settings, Rank ranks, std::uint32_t count,
                const std::function<void(Endpoint&)>& after) {
  Job job(ranks);
  run_threads(job, settings, [&](Endpoint& self, Rank rank) {
    Checker check;
    self.on_message_do = std::ref(check);
    std::mt19937 random(rank + 5);
    std::vector<std::uint32_t> sent(ranks);
    for (std::uint32_t total = 0; total < ranks * count;) {
      // Phases in which one peer is favoured make rings change hands.
      const Rank favourite = total / 500 % ranks;
      const Rank peer = random() % 4 == 0 ? static_cast<Rank>(random() % ranks) : favourite;
      const Rank target = sent[peer] < count ? peer : [&] {
        Rank other = 0;
        while (sent[other] == count)
          ++other;
        return other;
      }();
      send_number(self, rank, target, sent[target]++,
                  random() % 8 == 0 ? random() % 500 : random() % 12);
      ++total;
      if (random() % 8 == 0) self.transport().poll(self);
    }
    self.wait_messages(std::uint64_t{ranks} * count);
    EXPECT_EQ(self.messages, std::uint64_t{ranks} * count);
    after(self);
  });
}

TEST(Messages, InOrderThroughTheQueueAlone) {
  base::Settings settings = small_settings();
  settings.shm_rings = 0;
  all_to_all(settings, 3, 3000, [](Endpoint& self) {
    EXPECT_EQ(self.counter("sent_by_ring"), 0u);
    EXPECT_EQ(self.counter("rings_granted"), 0u);
  });
}

TEST(Messages, InOrderWithARingForEveryPeer) {
  all_to_all(small_settings(), 3, 3000, [](Endpoint& self) {
    EXPECT_EQ(self.counter("rings_granted"), 2u);
    EXPECT_EQ(self.counter("rings_revoked"), 0u);
    EXPECT_GT(self.counter("sent_by_ring"), 100u);
  });
}

TEST(Messages, InOrderWhileRingsChangeHands) {
  base::Settings settings = small_settings();
  settings.shm_rings = 1;
  std::atomic<std::uint64_t> revoked = 0;
  all_to_all(settings, 4, 4000, [&](Endpoint& self) { revoked += self.counter("rings_revoked"); });
  EXPECT_GT(revoked, 4u);
}

TEST(Messages, TheBusyPeerGetsTheRingOfTheQuietOne) {
  Job job(3);
  base::Settings settings = small_settings();
  settings.shm_rings = 1;
  run_threads(job, settings, [](Endpoint& self, Rank rank) {
    const auto talk_until_most_go_by_ring = [&] {
      while (self.counter("sent_by_ring") < 1000) {
        self.send_text(0, "talk");
        self.transport().poll(self);
      }
    };
    if (rank == 0) {
      while (self.receive() != "end") {
      }
      EXPECT_EQ(self.counter("rings_revoked"), 1u);
      EXPECT_EQ(self.counter("rings_granted"), 2u);
    } else if (rank == 1) {
      talk_until_most_go_by_ring();
      self.send_text(2, "your turn");
    } else {
      EXPECT_EQ(self.receive(), "your turn");
      talk_until_most_go_by_ring();
      self.send_text(0, "end");
    }
  });
}

TEST(Messages, LongOnesComeInFragmentsThroughARing) {
  Job job(2);
  base::Settings settings = small_settings();
  settings.shm_eager = 64 << 10;
  constexpr std::uint32_t count = 3000;
  run_threads(job, settings, [](Endpoint& self, Rank rank) {
    Checker check;
    self.on_message_do = std::ref(check);
    if (rank == 0) {
      std::mt19937 random(7);
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto message = make_message(0, i, random() % ((64 << 10) / 4));
        const auto* data = reinterpret_cast<const std::byte*>(message.data());
        while (self.transport().send(self.link(1), data, 12, data + 12, message.size() * 4 - 12) ==
               Posted::busy) {
          if (!self.transport().poll(self)) std::this_thread::yield();
        }
        self.transport().poll(self); // the ring is granted by message
      }
      self.wait_messages(1);
    } else {
      self.wait_messages(count);
      EXPECT_GT(self.messages_in_parts, count / 2);
      EXPECT_TRUE(self.body.empty());
      send_number(self, 1, 0, 0, 0);
    }
  });
}

TEST(Messages, ManyRanksInOneProcess) {
  all_to_all(small_settings(), 8, 300, [](Endpoint&) {});
}

// Whole segments of so many would not fit into the address space.
TEST(Messages, OfEachPeerLittleIsMapped) {
  constexpr Rank peers = 300;
  Job job(peers + 1, 1, std::uint64_t{1} << 40);
  const base::Settings settings;
  std::vector<std::unique_ptr<Job::View>> views;
  std::vector<std::unique_ptr<Endpoint>> all;
  for (Rank rank = 0; rank <= peers; ++rank) {
    views.push_back(std::make_unique<Job::View>(job, rank));
    all.push_back(std::make_unique<Endpoint>(*views.back(), settings));
  }
  for (Rank rank = 1; rank <= peers; ++rank) {
    all[0]->send_text(rank, std::to_string(rank));
    EXPECT_EQ(all[rank]->receive(), std::to_string(rank));
    all[rank]->send_text(0, std::to_string(rank) + " too");
    EXPECT_EQ(all[0]->receive(), std::to_string(rank) + " too");
  }
}

// A peer that starts later is met when it is there, and what waits for it sleeps meanwhile.
TEST(Messages, APeerThatStartsLaterIsReachedThen) {
  Job job(2, 1);
  Job::View views[] = {{job, 0}, {job, 1}};
  Endpoint early(views[0], {});
  engine::PeerState state = engine::PeerState::failed;
  early.transport().connect(1, state);
  EXPECT_EQ(state, engine::PeerState::connecting);
  for (int polls = 0; polls < 100; ++polls)
    EXPECT_FALSE(early.transport().poll(early));
  EXPECT_TRUE(early.states.empty());
  Endpoint late(views[1], {});
  early.wait([&] { return early.states.contains(1); });
  EXPECT_EQ(early.states[1], engine::PeerState::connected);
  early.send_text(1, "at last");
  EXPECT_EQ(late.receive(), "at last");
}

TEST(Messages, APeerThatEndsBeforeItIsReachedHasFailed) {
  Job job(3, 1);
  Job::View view(job, 0);
  Endpoint self(view, {});
  engine::PeerState state = engine::PeerState::failed;
  self.transport().connect(1, state);
  EXPECT_EQ(state, engine::PeerState::connecting);
  job.fail(1);
  job.fail(2);
  self.wait([&] { return self.states.contains(1); });
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
  self.transport().connect(2, state); // whatever it has sent is read before
  if (state == engine::PeerState::connecting) {
    self.wait([&] { return self.states.contains(2); });
    state = self.states[2];
  }
  EXPECT_EQ(state, engine::PeerState::failed);
}

// Two jobs on one machine: each process numbers the others in its own way, and knows who writes.
TEST(Messages, GoFromOneJobToAnother) {
  constexpr Rank sizes[] = {2, 3};
  Job jobs[] = {Job(sizes[0], 8, 1 << 28, {1}), Job(sizes[1], 8, 1 << 28, {2})};
  base::Settings settings;
  settings.shm_ring_after = 4; // soon all take rings
  std::vector<std::unique_ptr<Job::View>> views;
  std::vector<std::unique_ptr<Endpoint>> all[2];
  for (const int job : {0, 1}) {
    for (Rank rank = 0; rank < sizes[job]; ++rank) {
      views.push_back(std::make_unique<Job::View>(jobs[job], rank));
      all[job].push_back(std::make_unique<Endpoint>(*views.back(), settings));
    }
  }
  Endpoint& first = *all[0][0];
  // One that the other process does not know of yet waits until it does.
  first.meet(*views[sizes[0]]);
  engine::PeerState state = engine::PeerState::failed;
  first.transport().connect(sizes[0] + 2, state);
  EXPECT_EQ(state, engine::PeerState::connecting);
  EXPECT_FALSE(first.transport().poll(first));
  const auto theirs = [&](int job) { return sizes[job]; }; // index of the other job's rank 0
  for (const int job : {0, 1}) {
    for (const auto& each : all[job])
      EXPECT_EQ(each->meet(*views[job == 0 ? sizes[0] : 0]), theirs(job));
  }
  first.wait([&] { return first.states.contains(sizes[0] + 2); });
  EXPECT_EQ(first.states[sizes[0] + 2], engine::PeerState::connected);

  std::vector<Rank> sources;
  for (const int job : {0, 1}) {
    for (const auto& each : all[job])
      each->on_message_do = [&](Rank source, const std::byte* text, std::size_t bytes) {
        sources.push_back(source);
        const std::string said(reinterpret_cast<const char*>(text), bytes);
        each->inbox.push_back(said);
      };
  }
  for (int round = 0; round < 40; ++round) {
    for (const int job : {0, 1}) {
      for (Rank from = 0; from < sizes[job]; ++from) {
        for (Rank to = 0; to < sizes[1 - job]; ++to) {
          const std::string text = fmt::format("{}: {} of {} to {}", round, from, job, to) +
                                   std::string(round % 3 == 0 ? 15'000 : 0, 'x');
          all[job][from]->send_text(theirs(job) + to, text);
          ASSERT_EQ(all[1 - job][to]->receive(), text);
          ASSERT_EQ(sources.back(), theirs(1 - job) + from);
          if (from == to) continue;
          const Rank mate = (from + 1) % sizes[job];
          all[job][from]->send_text(mate, "at home");
          ASSERT_EQ(all[job][mate]->receive(), "at home");
          ASSERT_EQ(sources.back(), from);
        }
      }
    }
  }
  EXPECT_GT(first.counter("rings_granted"), 0u);
}

// Processes without neighbours have memory of their own, until they meet: what they share from then
// on is in the job's file, and what they had before stays theirs.
TEST(Messages, GoBetweenJobsOfOne) {
  Job jobs[] = {Job(1, 8, 1 << 28, {1}), Job(1, 8, 1 << 28, {2})};
  base::Settings settings;
  settings.shm_ring_after = 4;
  std::vector<std::unique_ptr<Job::View>> views;
  std::vector<std::unique_ptr<Endpoint>> ends;
  std::vector<std::vector<void*>> before(2);
  for (const int job : {0, 1}) {
    views.push_back(std::make_unique<Job::View>(jobs[job], 0));
    ends.push_back(std::make_unique<Endpoint>(*views.back(), settings));
    ends.back()->send_text(0, "to oneself");
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{2} << 20}) {
      void* const memory = ends.back()->transport().allocate(bytes);
      before[job].push_back(memory);
      std::memset(memory, 7, bytes);
      EXPECT_TRUE(ends.back()->transport().is_mapped(
          ends.back()->transport().register_cached(memory, bytes)));
    }
  }
  for (const int job : {0, 1}) {
    EXPECT_EQ(ends[job]->meet(*views[1 - job]), 1u);
    Transport& transport = ends[job]->transport();
    void* const after = transport.allocate(100);
    EXPECT_TRUE(transport.is_mapped(transport.register_cached(after, 100)));
    transport.free(after);
    for (void* const memory : before[job]) {
      EXPECT_FALSE(transport.is_mapped(transport.register_cached(memory, 100)));
      EXPECT_EQ(static_cast<char*>(memory)[99], 7);
    }
  }
  for (const int job : {0, 1})
    EXPECT_EQ(ends[job]->receive(), "to oneself"); // sent before, and read in the same place
  for (int round = 0; round < 40; ++round) {
    for (const int job : {0, 1}) {
      const std::string text =
          fmt::format("{} from {}", round, job) + std::string(round % 3 == 0 ? 15'000 : 0, 'x');
      ends[job]->send_text(1, text);
      ASSERT_EQ(ends[1 - job]->receive(), text);
    }
  }
  EXPECT_GT(ends[0]->counter("rings_granted"), 0u);
  for (const int job : {0, 1})
    for (void* const memory : before[job])
      ends[job]->transport().free(memory);
}

// Two processes that are each a job.
struct TwoJobs {
  explicit TwoJobs(base::Settings settings = {}) {
    for (const int job : {0, 1})
      ends.push_back(std::make_unique<Endpoint>(views[job], settings));
  }
  void meet() {
    for (const int job : {0, 1})
      ASSERT_EQ(ends[job]->meet(views[1 - job]), 1u);
  }
  void part() {
    for (const int job : {0, 1})
      ends[job]->part_from(views[1 - job], 1);
  }
  void talk(int rounds) {
    for (int round = 0; round < rounds; ++round)
      for (const int job : {0, 1}) {
        ends[job]->send_text(1, std::to_string(round));
        ASSERT_EQ(ends[1 - job]->receive(), std::to_string(round));
      }
  }

  Job jobs[2] = {Job(1, 8, 1 << 28, {1}), Job(1, 8, 1 << 28, {2})};
  Job::View views[2] = {Job::View(jobs[0], 0), Job::View(jobs[1], 0)};
  std::vector<std::unique_ptr<Endpoint>> ends;
};

// Jobs that part do not wait for each other's end: the last word of one that ends is read later.
TEST(Messages, ToAnotherJobOutliveTheirSender) {
  for (const int last : {0, 1}) {
    base::Settings settings;
    settings.shm_ring_after = 4;
    TwoJobs two(settings);
    two.meet();
    two.talk(40);
    if (last == 1) {
      two.ends[0]->send_text(1, "question");
      ASSERT_EQ(two.ends[1]->receive(), "question");
    }
    two.ends[static_cast<std::size_t>(last)]->send_text(1, "the last word");
    two.ends[static_cast<std::size_t>(last)].reset();
    const SharedMemory gone = two.views[last].own_memory();
    ASSERT_EQ(fallocate(gone.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>(gone.offset), static_cast<off_t>(gone.capacity)),
              0);
    EXPECT_EQ(two.ends[1 - static_cast<std::size_t>(last)]->receive(), "the last word");
  }
}

// More often than there are seats.
TEST(Messages, TwoJobsMeetAndPartAgainAndAgain) {
  base::Settings settings;
  settings.shm_ring_after = 4;
  TwoJobs two(settings);
  std::vector<std::size_t> bytes;
  for (int round = 0; round < 3000; ++round) {
    two.meet();
    two.talk(10);
    two.part();
    bytes.push_back(two.ends[0]->transport().memory_bytes());
  }
  EXPECT_EQ(bytes[2999], bytes[99]);
}

// What came and was not read before is nobody's afterwards.
TEST(Messages, OfAJobThatOneHasPartedFromAreDropped) {
  TwoJobs two;
  two.meet();
  two.ends[1]->send_text(1, "never read"); // nor is anything else from there
  two.part();
  EXPECT_FALSE(two.ends[0]->transport().poll(*two.ends[0]) && !two.ends[0]->inbox.empty());
  EXPECT_FALSE(two.ends[0]->failure);
  two.meet();
  two.talk(3);
}

TEST(Messages, MemoryFollowsUse) {
  Job job(2);
  run_threads(job, {}, [](Endpoint& self, Rank rank) {
    const std::size_t before = self.transport().memory_bytes();
    EXPECT_LE(before, std::size_t{300} << 10);
    void* block = self.transport().allocate(1 << 20);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(self.transport().memory_bytes(), before + (1 << 20));
    self.transport().free(block);
    EXPECT_LT(self.transport().memory_bytes(), before + (1 << 20));
    self.send_text(1 - rank, "x");
    self.wait_messages(1);
  });
}

TEST(Messages, NoMemoryForTheQueueIsAClearError) {
  Job job(2, 2, 64 << 10);
  Job::View view(job, 0);
  try {
    const boot::Processes processes(view);
    Transport transport(processes, {});
    ADD_FAILURE() << "a queue of 256 KiB in a segment of 64 KiB";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.error_class, MPI_ERR_NO_MEM);
    EXPECT_NE(error.text.find("MACADAM_SHM_QUEUE"), std::string::npos) << error.text;
  }
}

} // namespace
} // namespace macadam::net::shm::test
