// SPDX-License-Identifier: BSD-3-Clause
// Rings and the block that two processes write in turn, together: which way a message goes, and
// that all ways keep one order.
#include "patience.h"

#include "net/shm/messages/pair_channel.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace macadam::net::shm {
namespace {

using Written = PairChannel::Written;
constexpr std::uint64_t lines = 32;

struct Ring {
  RingControl control;
  Line of[lines] = {};
};

// What two processes share, and the end of each.
struct Pair {
  Pair() {
    std::byte* const begin = Mailbox::begin(memory.data());
    for (unsigned who = 0; who < 2; ++who) {
      ends[who].out = RingWriter(to[1 - who].control, lines);
      ends[who].in = RingReader(to[who].control, lines);
      ends[who].mailbox = Mailbox(begin, who == 0);
    }
  }
  Ring to[2];
  alignas(2 * line_bytes) std::array<std::byte, Mailbox::bytes> memory = {};
  PairChannel ends[2];
};

MessageBody body_of(const std::vector<std::uint32_t>& words) {
  return {words.data(), words.size() * sizeof words[0], nullptr, 0};
}

// One that has so many words, each its number.
std::vector<std::uint32_t> message(std::uint32_t number, std::size_t words) {
  return std::vector<std::uint32_t>(words, number);
}

Written say(PairChannel& end, std::uint32_t number, std::size_t words = 2) {
  return end.write(Kind::message, body_of(message(number, words)));
}

// The number of the next message, or -1.
int hear(PairChannel& end) {
  const Line* line = end.next();
  while (line != nullptr && line->kind == Kind::pad) {
    end.pop();
    line = end.next();
  }
  if (line == nullptr) return -1;
  std::vector<std::uint32_t> words(line->bytes / sizeof(std::uint32_t));
  std::memcpy(words.data(), line->body(), line->bytes);
  end.pop();
  for (const std::uint32_t word : words)
    EXPECT_EQ(word, words[0]);
  return static_cast<int>(words[0]);
}

// Each has heard the other once; the first has the turn.
void begin(Pair& pair) {
  auto& [first, second] = pair.ends;
  EXPECT_EQ(say(first, 0), Written::to_ring); // is no answer
  EXPECT_EQ(hear(second), 0);
  EXPECT_EQ(say(second, 0), Written::to_ring); // has not the turn
  EXPECT_EQ(hear(first), 0);
}

TEST(PairChannel, AnswersGoByMailbox) {
  Pair pair;
  auto& [first, second] = pair.ends;
  begin(pair);
  for (std::uint32_t i = 1; i < 100; ++i) {
    EXPECT_EQ(say(first, i), Written::to_mailbox);
    EXPECT_EQ(hear(first), -1);
    EXPECT_EQ(hear(second), static_cast<int>(i));
    EXPECT_EQ(say(second, i, i % 2 == 0 ? 2 : 1000), Written::to_mailbox);
    EXPECT_EQ(hear(first), static_cast<int>(i));
  }
}

TEST(PairChannel, WhoWritesAtTheSameTimeUsesRings) {
  Pair pair;
  auto& [first, second] = pair.ends;
  begin(pair);
  for (std::uint32_t i = 1; i < 100; ++i) {
    const Written method = i == 1 ? Written::to_mailbox : Written::to_ring;
    EXPECT_EQ(say(first, i), method);
    EXPECT_EQ(say(second, i), Written::to_ring);
    EXPECT_EQ(hear(first), static_cast<int>(i));
    EXPECT_EQ(hear(second), static_cast<int>(i));
  }
}

TEST(PairChannel, WhatFollowsAnAnswerWaitsForIt) {
  Pair pair;
  auto& [first, second] = pair.ends;
  begin(pair);
  EXPECT_EQ(say(first, 1), Written::to_mailbox);
  EXPECT_EQ(say(first, 2), Written::to_ring);
  EXPECT_EQ(say(first, 3), Written::to_ring);
  EXPECT_EQ(hear(second), 1);
  EXPECT_EQ(say(second, 1), Written::to_mailbox);
  EXPECT_EQ(hear(second), 2);
  EXPECT_EQ(hear(second), 3);
  EXPECT_EQ(hear(first), 1);
  EXPECT_EQ(say(first, 4), Written::to_ring); // that was no answer to all it had said
  EXPECT_EQ(hear(second), 4);
}

TEST(PairChannel, WithoutAMailboxThereAreRings) {
  Pair pair;
  auto& [first, second] = pair.ends;
  first.mailbox = second.mailbox = {};
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(say(first, i), Written::to_ring);
    EXPECT_EQ(hear(second), static_cast<int>(i));
    EXPECT_EQ(say(second, i), Written::to_ring);
    EXPECT_EQ(hear(first), static_cast<int>(i));
  }
}

// By rings alone, so that both write at the same time.
void talk(Pair& pair, std::uint32_t exchanges) {
  auto& [first, second] = pair.ends;
  for (std::uint32_t i = 0; i < exchanges; ++i) {
    EXPECT_EQ(say(first, i), Written::to_ring);
    EXPECT_EQ(say(second, i), Written::to_ring);
    EXPECT_EQ(hear(second), static_cast<int>(i));
    EXPECT_EQ(hear(first), static_cast<int>(i));
  }
}

TEST(PairChannel, ATalkKeepsToFewLines) {
  Pair pair;
  pair.ends[0].mailbox = pair.ends[1].mailbox = {};
  talk(pair, 100);
  for (const Ring& ring : pair.to)
    for (std::uint64_t i = lines_at_once(lines) + 2; i < lines; ++i)
      EXPECT_EQ(ring.of[i].stamp, 0u) << "line " << i;
}

// How many messages of one line find room while nobody reads.
std::uint64_t burst(PairChannel& end) {
  std::uint64_t written = 0;
  while (say(end, 0) != Written::nothing)
    ++written;
  return written;
}

TEST(PairChannel, ABurstHasTheWholeRing) {
  for (std::uint32_t exchanges = 1; exchanges < 20; ++exchanges) {
    SCOPED_TRACE(std::to_string(exchanges) + " exchanges");
    Pair pair;
    auto& [first, second] = pair.ends;
    first.mailbox = second.mailbox = {};
    talk(pair, exchanges);
    // Some of it before the second has read that the ring begins anew.
    const std::uint64_t at_once = lines_at_once(lines);
    std::uint64_t written = burst(first);
    EXPECT_GE(written, at_once - 1); // one is left empty
    while (hear(second) >= 0)
      --written;
    EXPECT_EQ(written, 0u);
    EXPECT_GE(burst(first), lines - 2 * at_once);
  }
}

TEST(PairChannel, RandomExchangesKeepTheirOrder) {
  std::uint64_t by_mailbox = 0, by_ring = 0, refused = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair pair;
    std::mt19937 random(seed);
    std::uint32_t sent[2] = {}, heard[2] = {};
    const auto burst_length = 2 + random() % 20;
    for (int step = 0; step < 2000; ++step) {
      const unsigned who = random() % 2;
      PairChannel& end = pair.ends[who];
      if (random() % burst_length == 0) {
        const Written written = say(end, sent[who], 1 + random() % 100);
        if (written != Written::nothing) ++sent[who];
        ++(written == Written::to_mailbox ? by_mailbox
           : written == Written::to_ring  ? by_ring
                                          : refused);
      } else if (const int number = hear(end); number >= 0) {
        ASSERT_EQ(static_cast<std::uint32_t>(number), heard[who]++);
      }
    }
    for (unsigned who = 0; who < 2; ++who) {
      while (hear(pair.ends[who]) >= 0)
        ++heard[who];
      EXPECT_EQ(heard[who], sent[1 - who]);
    }
  }
  EXPECT_GT(by_mailbox, 1000u);
  EXPECT_GT(by_ring, 1000u);
  EXPECT_GT(refused, 100u);
}

// Returns how many messages went by the mailboxes.
std::uint64_t talk_in_two_threads() {
  constexpr std::uint32_t messages = 30000;
  Pair pair;
  std::uint64_t by_mailbox[2] = {};
  const auto process = [&](unsigned who) {
    PairChannel& end = pair.ends[who];
    std::mt19937 random(who);
    std::uint32_t sent = 0, heard = 0, owed = who == 0 ? 1 : 0;
    test::Patience patience;
    while (sent < messages || heard < messages) {
      // Mostly an answer for each message, sometimes several, or none for a while.
      while (owed > 0 && sent < messages) {
        const Written written = say(end, sent, 1 + random() % 60);
        if (written == Written::nothing) break;
        ++sent;
        --owed;
        by_mailbox[who] += written == Written::to_mailbox ? 1 : 0;
      }
      const int number = hear(end);
      if (number < 0) {
        if (sent < messages && random() % 1000 == 0) ++owed;
        patience.wait();
        continue;
      }
      ASSERT_EQ(static_cast<std::uint32_t>(number), heard++);
      const auto chance = random() % 40;
      owed += chance == 0 ? 2 : chance < 3 ? 0 : 1;
      if (heard == messages) owed = messages; // nobody asks any more
    }
  };
  std::thread second([&] { process(1); });
  process(0);
  second.join();
  return by_mailbox[0] + by_mailbox[1];
}

// Rings and mailboxes mixed: usually thousands of answers at once, few where the threads wait long
// for a core.
TEST(PairChannel, TwoThreads) {
  std::uint64_t by_mailbox = 0;
  for (int talks = 0; talks < 10 && by_mailbox <= 100; ++talks)
    by_mailbox += talk_in_two_threads();
  RecordProperty("in_turn", std::to_string(by_mailbox));
  EXPECT_GT(by_mailbox, 100u);
}

} // namespace
} // namespace macadam::net::shm
