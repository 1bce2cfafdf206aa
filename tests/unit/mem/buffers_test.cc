// SPDX-License-Identifier: BSD-3-Clause
#include "mem/buffers.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace macadam::mem {
namespace {

bool aligned(const std::byte* buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer) % Buffers::alignment == 0;
}

TEST(Buffers, EverySizeIsAlignedAndWritable) {
  Buffers buffers;
  for (const std::size_t bytes : {0ul, 1ul, 63ul, 64ul, 65ul, 4096ul, 4097ul, (1ul << 20) - 1,
                                  1ul << 20, (1ul << 20) + 1, 5'000'000ul}) {
    std::byte* buffer = buffers.take(bytes);
    ASSERT_NE(buffer, nullptr) << bytes;
    EXPECT_TRUE(aligned(buffer)) << bytes;
    std::memset(buffer, 0x5a, bytes);
    EXPECT_GE(buffers.bytes(), bytes);
    buffers.give(buffer, bytes);
  }
}

TEST(Buffers, ReusesWhatWasGivenBackLast) {
  Buffers buffers;
  std::byte* first = buffers.take(100);
  std::byte* second = buffers.take(100);
  const std::size_t held = buffers.bytes();
  buffers.give(first, 100);
  buffers.give(second, 100);
  EXPECT_EQ(buffers.bytes(), held);
  EXPECT_EQ(buffers.cached_bytes(), held);
  EXPECT_EQ(buffers.take(128), second); // the same class: 65 to 128 bytes
  EXPECT_EQ(buffers.take(65), first);
  EXPECT_EQ(buffers.bytes(), held);
  EXPECT_EQ(buffers.cached_bytes(), 0u);
  buffers.give(first, 65);
  buffers.give(second, 128);
}

TEST(Buffers, LongBuffersGoBackToTheSystem) {
  Buffers buffers;
  std::byte* buffer = buffers.take(Buffers::largest_class + 1);
  EXPECT_EQ(buffers.bytes(), Buffers::largest_class + Buffers::alignment);
  buffers.give(buffer, Buffers::largest_class + 1);
  EXPECT_EQ(buffers.bytes(), 0u);
}

TEST(Buffers, LongBuffersMayAllBeOne) {
  alignas(Buffers::alignment) static std::array<std::byte, 2 * Buffers::largest_class> one;
  Buffers buffers;
  buffers.alias_long(one);
  std::byte* const first = buffers.take(Buffers::largest_class + 1);
  std::byte* const second = buffers.take(one.size());
  std::byte* const longer = buffers.take(one.size() + 1);
  std::byte* const shorter = buffers.take(Buffers::largest_class);
  EXPECT_EQ(first, one.data());
  EXPECT_EQ(second, one.data());
  EXPECT_NE(longer, one.data());
  EXPECT_NE(shorter, one.data());
  const std::size_t unaliased = one.size() + Buffers::alignment + Buffers::largest_class;
  EXPECT_EQ(buffers.bytes(), Buffers::largest_class + Buffers::alignment + one.size() + unaliased);
  buffers.give(first, Buffers::largest_class + 1);
  buffers.give(second, one.size());
  EXPECT_EQ(buffers.bytes(), unaliased);
  buffers.give(longer, one.size() + 1);
  buffers.give(shorter, Buffers::largest_class);
  EXPECT_EQ(buffers.bytes(), buffers.cached_bytes());
}

TEST(Buffers, KeepsNoMoreThanItsBound) {
  Buffers buffers(10'000);
  std::vector<std::byte*> taken;
  for (int i = 0; i < 20; ++i)
    taken.push_back(buffers.take(1000));
  EXPECT_EQ(buffers.bytes(), 20u * 1024);
  for (std::byte* buffer : taken)
    buffers.give(buffer, 1000);
  EXPECT_EQ(buffers.cached_bytes(), 9u * 1024);
  EXPECT_EQ(buffers.bytes(), 9u * 1024);
}

TEST(Buffers, NullMayBeGivenBack) {
  Buffers buffers;
  buffers.give(nullptr, 0);
  buffers.give(nullptr, 1u << 30);
  EXPECT_EQ(buffers.bytes(), 0u);
}

TEST(Buffers, SaysHowMuchIsMissing) {
  Buffers buffers;
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2}) {
    try {
      buffers.take(bytes);
      FAIL() << "took " << bytes << " bytes";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_NO_MEM);
      EXPECT_NE(error.text.find(std::to_string(bytes)), std::string::npos) << error.text;
    }
  }
  EXPECT_EQ(buffers.bytes(), 0u);
}

TEST(Buffers, RandomUseNeverOverlaps) {
  Buffers buffers(1 << 20);
  std::mt19937 random(7);
  struct Taken {
    std::byte* data;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Taken> taken;
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 50 && random() % 2 == 0) {
      const std::size_t bytes = random() % (1u << (random() % 18));
      const auto mark = static_cast<unsigned char>(random());
      std::byte* data = buffers.take(bytes);
      std::memset(data, mark, bytes);
      taken.push_back({data, bytes, mark});
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      const Taken last = taken.back();
      taken.pop_back();
      for (std::size_t i = 0; i < last.bytes; ++i)
        ASSERT_EQ(static_cast<unsigned char>(last.data[i]), last.mark) << "step " << step;
      buffers.give(last.data, last.bytes);
    }
  }
  for (const Taken& each : taken)
    buffers.give(each.data, each.bytes);
  EXPECT_EQ(buffers.bytes(), buffers.cached_bytes());
}

} // namespace
} // namespace macadam::mem
