// SPDX-License-Identifier: BSD-3-Clause
// The shared queue and the rings alone: threads as senders, wrap-around, no room, and data made to
// look like stamps.
#include "patience.h"

#include "net/shm/messages/ring.h"
#include "net/shm/messages/shared_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace macadam::net::shm {
namespace {

struct alignas(line_bytes) Block {
  std::byte bytes[line_bytes];
};

struct Memory {
  explicit Memory(std::uint64_t lines) : blocks(std::make_unique<Block[]>(lines)) {}
  std::unique_ptr<Block[]> blocks;
};

// A message: its number, then words of which every one equals the stamp of the present and the next
// laps as well as can be guessed.
std::vector<std::uint32_t> words_of(std::uint32_t number, std::size_t count) {
  std::vector<std::uint32_t> words(count + 1);
  words[0] = number;
  for (std::size_t i = 0; i < count; ++i)
    words[i + 1] = CircularBuffer::stamp_of_lap(i % 7 + number / 3);
  return words;
}

MessageBody body_of(const std::vector<std::uint32_t>& words) {
  return {words.data(), sizeof words[0], words.data() + 1, (words.size() - 1) * sizeof words[0]};
}

void expect_words(const Line& line, std::uint32_t number, std::size_t count) {
  const std::vector<std::uint32_t> words = words_of(number, count);
  ASSERT_EQ(line.bytes, words.size() * sizeof words[0]);
  ASSERT_EQ(std::memcmp(line.body(), words.data(), line.bytes), 0) << number;
}

TEST(Slots, SizesInLines) {
  EXPECT_EQ(lines_for(0), 1u);
  EXPECT_EQ(lines_for(52), 1u);
  EXPECT_EQ(lines_for(53), 2u);
  EXPECT_EQ(lines_for(52 + 64), 2u);
  EXPECT_EQ(lines_for(52 + 65), 3u);
  EXPECT_EQ(lines_for(20 + 8), 1u); // an eager header and eight bytes
}

TEST(Slots, NoStampIsThatOfALineWithout) {
  const CircularBuffer buffer(nullptr, 8);
  for (const std::uint64_t lap :
       {0ULL, 1ULL, (1ULL << 31) - 1, 1ULL << 31, (1ULL << 32) - 1, 1ULL << 32})
    for (const std::uint64_t line : {0ULL, 7ULL}) {
      EXPECT_NE(buffer.stamp(8 * lap + line), 0u);
      EXPECT_NE(buffer.stamp(8 * lap + line), buffer.stamp(8 * (lap + 1) + line));
    }
}

TEST(Slots, CopySmallCopiesExactlyAllBytes) {
  for (std::size_t bytes = 0; bytes < 100; ++bytes) {
    std::byte from[128];
    std::byte to[128];
    for (std::size_t i = 0; i < sizeof from; ++i)
      from[i] = static_cast<std::byte>(i + 1);
    std::memset(to, 0, sizeof to);
    base::copy(to + 8, from, bytes);
    ASSERT_EQ(std::memcmp(to + 8, from, bytes), 0) << bytes;
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_EQ(to[i], std::byte{0}) << bytes;
    for (std::size_t i = 8 + bytes; i < sizeof to; ++i)
      ASSERT_EQ(to[i], std::byte{0}) << bytes;
  }
}

TEST(SharedQueue, EmptyHasNothingAndFullRefuses) {
  constexpr std::uint64_t lines = 16;
  Memory memory(lines);
  SegmentHeader header;
  Seat seat;
  const CircularBuffer buffer(memory.blocks.get(), lines);
  SharedQueueWriter writer(header, buffer, seat);
  SharedQueueReader reader(header, buffer);
  EXPECT_EQ(reader.next(), nullptr);
  for (std::uint32_t i = 0; i < lines; ++i)
    EXPECT_TRUE(writer.write(Kind::message, 3, body_of(words_of(i, 2))));
  EXPECT_FALSE(writer.write(Kind::message, 3, body_of(words_of(99, 2))));
  for (std::uint32_t i = 0; i < lines; ++i) {
    const Line* line = reader.next();
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->place, 3u);
    expect_words(*line, i, 2);
    reader.pop();
  }
  EXPECT_EQ(reader.next(), nullptr);
  EXPECT_TRUE(writer.write(Kind::message, 3, body_of(words_of(100, 2))));
  ASSERT_NE(reader.next(), nullptr);
  expect_words(*reader.next(), 100, 2);
}

// Every mix of lengths in a small circular buffer, so that every position gets to be an inner line
// before it is polled for a first one.
template <class Writer, class Reader>
void random_lengths(Writer& writer, Reader& reader, std::uint64_t lines) {
  std::mt19937 random(20);
  std::vector<std::size_t> lengths;
  std::size_t read = 0;
  while (read < 200000) {
    const std::size_t count = random() % (lines / 4 * 16 - 4);
    while (lengths.size() - read < random() % 4 &&
           writer.write(Kind::message, 1,
                        body_of(words_of(static_cast<std::uint32_t>(lengths.size()), count)))) {
      lengths.push_back(count);
    }
    while (const Line* line = reader.next()) {
      if (line->kind != Kind::pad) {
        ASSERT_LT(read, lengths.size()) << "a message that nobody sent";
        ASSERT_NO_FATAL_FAILURE(
            expect_words(*line, static_cast<std::uint32_t>(read), lengths[read]));
        ++read;
      }
      reader.pop();
    }
    ASSERT_EQ(read, lengths.size()) << "a message is missing";
  }
}

TEST(SharedQueue, RandomLengthsWithDataLikeStamps) {
  constexpr std::uint64_t lines = 32;
  Memory memory(lines);
  SegmentHeader header;
  Seat seat;
  const CircularBuffer buffer(memory.blocks.get(), lines);
  SharedQueueWriter writer(header, buffer, seat);
  SharedQueueReader reader(header, buffer);
  random_lengths(writer, reader, lines);
}

TEST(Ring, RandomLengthsWithDataLikeStamps) {
  constexpr std::uint64_t lines = 32;
  Memory memory(ring_bytes(lines) / line_bytes);
  auto& control = *new (memory.blocks.get()) RingControl;
  RingWriter writer(control, lines);
  RingReader reader(control, lines);
  random_lengths(writer, reader, lines);
}

// Fills each inner line with the very stamp that its position is polled for next.
TEST(Ring, EveryInnerLineBearsTheNextStamp) {
  constexpr std::uint64_t lines = 8;
  Memory memory(ring_bytes(lines) / line_bytes);
  auto& control = *new (memory.blocks.get()) RingControl;
  RingWriter writer(control, lines);
  RingReader reader(control, lines);
  const CircularBuffer buffer(&control + 1, lines);
  std::uint64_t position = 0;
  for (int round = 0; round < 1000; ++round) {
    // Two lines, the second one all stamps of its position's next lap; one line; and so on, so that
    // laps begin at odd positions too.
    const bool pair = round % 3 != 0;
    const std::uint32_t count = pair ? 13 + 15 : 1;
    position += buffer.gap(position, lines_for(count * 4));
    std::vector<std::uint32_t> words(count, buffer.stamp(position + 1 + lines));
    ASSERT_TRUE(
        writer.write(Kind::message, 0, {words.data(), 4, words.data() + 1, 4 * (count - 1)}));
    while (reader.next() != nullptr && reader.next()->kind == Kind::pad)
      reader.pop();
    const Line* line = reader.next();
    ASSERT_NE(line, nullptr);
    ASSERT_EQ(line->bytes, 4 * count);
    reader.pop();
    ASSERT_EQ(reader.next(), nullptr) << "stale data passed for a message in round " << round;
    position += lines_for(count * 4);
  }
}

TEST(Ring, FullRefusesAndGoesOn) {
  constexpr std::uint64_t lines = 16;
  Memory memory(ring_bytes(lines) / line_bytes);
  auto& control = *new (memory.blocks.get()) RingControl;
  RingWriter writer(control, lines);
  RingReader reader(control, lines);
  std::uint32_t sent = 0;
  while (writer.write(Kind::message, 0, body_of(words_of(sent, 1))))
    ++sent;
  EXPECT_EQ(sent, lines - 1);
  for (std::uint32_t i = 0; i < sent; ++i) {
    ASSERT_NE(reader.next(), nullptr);
    expect_words(*reader.next(), i, 1);
    reader.pop();
  }
  EXPECT_EQ(reader.next(), nullptr);
  EXPECT_TRUE(writer.write(Kind::message, 0, body_of(words_of(77, 1))));
}

TEST(SharedQueue, ManySendersKeepTheirOrder) {
  constexpr std::uint64_t lines = 64;
  constexpr Rank senders = 4;
  constexpr std::uint32_t messages = 20000;
  Memory memory(lines);
  SegmentHeader header;
  Seat seats[senders];
  const CircularBuffer buffer(memory.blocks.get(), lines);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < senders; ++rank) {
    threads.emplace_back([&, rank] {
      SharedQueueWriter writer(header, buffer, seats[rank]);
      test::Patience patience;
      std::mt19937 random(rank);
      for (std::uint32_t i = 0; i < messages; ++i) {
        const auto words = words_of(i, random() % 200);
        while (!writer.write(Kind::message, rank, body_of(words)))
          patience.wait();
      }
    });
  }
  SharedQueueReader reader(header, buffer);
  test::Patience patience;
  std::vector<std::mt19937> randoms;
  for (Rank rank = 0; rank < senders; ++rank)
    randoms.emplace_back(rank);
  std::vector<std::uint32_t> next(senders);
  for (std::uint32_t read = 0; read < senders * messages;) {
    const Line* line = reader.next();
    if (line == nullptr) {
      patience.wait();
      continue;
    }
    if (line->kind != Kind::pad) {
      ASSERT_LT(line->place, senders);
      const std::size_t count = randoms[line->place]() % 200;
      expect_words(*line, next[line->place]++, count);
      ++read;
    }
    reader.pop();
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(reader.next(), nullptr);
}

TEST(Ring, SenderAndReceiverInTwoThreads) {
  constexpr std::uint64_t lines = 32;
  constexpr std::uint32_t messages = 50000;
  Memory memory(ring_bytes(lines) / line_bytes);
  auto& control = *new (memory.blocks.get()) RingControl;
  std::thread sender([&] {
    RingWriter writer(control, lines);
    test::Patience patience;
    std::mt19937 random(7);
    for (std::uint32_t i = 0; i < messages; ++i) {
      const auto words = words_of(i, random() % 100);
      while (!writer.write(Kind::message, 0, body_of(words)))
        patience.wait();
    }
  });
  RingReader reader(control, lines);
  test::Patience patience;
  std::mt19937 random(7);
  for (std::uint32_t read = 0; read < messages;) {
    const Line* line = reader.next();
    if (line == nullptr) {
      patience.wait();
      continue;
    }
    if (line->kind != Kind::pad) expect_words(*line, read++, random() % 100);
    reader.pop();
  }
  sender.join();
}

} // namespace
} // namespace macadam::net::shm
