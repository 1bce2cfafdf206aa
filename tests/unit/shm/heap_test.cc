// SPDX-License-Identifier: BSD-3-Clause
// The memory of a process: its extents, the blocks in them, and what its peers have mapped.
#include "base/error.h"
#include "job.h"
#include "net/shm/heap.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <vector>

namespace macadam::net::shm::test {
namespace {

constexpr std::uint64_t capacity = std::uint64_t{1} << 30;
constexpr std::uint64_t front = std::uint64_t{256} << 10;

// A machine with so much memory to promise.
class Machine final : public boot::Job {
 public:
  explicit Machine(unsigned processes = 2) : view_(job_, 0), processes_(processes) {}
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return static_cast<int>(processes_); }
  [[nodiscard]] boot::Secret secret() const override { return view_.secret(); }
  [[nodiscard]] int cores() const override { return 1; }
  [[nodiscard]] SharedMemory own_memory() override { return view_.own_memory(); }
  [[nodiscard]] SharedMemory memory_of(int peer) const override { return view_.memory_of(peer); }
  void publish(std::span<const std::byte> address) override { view_.publish(address); }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int peer) const override {
    return view_.fetch(peer);
  }
  [[nodiscard]] pid_t pid(int peer) const override { return view_.pid(peer); }
  std::string promise(std::uint64_t bytes) override {
    if (promised + bytes > memory) return "the machine has none left";
    promised += bytes;
    return {};
  }
  void withdraw(std::uint64_t bytes) override { promised -= bytes; }

  // Bytes for which pages were taken.
  std::size_t pages() {
    struct stat status {};
    fstat(view_.own_memory().fd, &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

  std::uint64_t memory = ~std::uint64_t{0};
  std::uint64_t promised = 0;

 private:
  test::Job job_{2, 1, capacity};
  test::Job::View view_;
  unsigned processes_;
};

class HeapTest : public testing::TestWithParam<unsigned> {
 protected:
  Machine machine_{GetParam()};
  Segment segment_{machine_, front};
  Heap heap_{segment_};
};

// Alone, and with peers.
INSTANTIATE_TEST_SUITE_P(Processes, HeapTest, testing::Values(1, 2));

TEST_P(HeapTest, BlocksAreAlignedDisjointAndJoinedInTheEnd) {
  std::mt19937 random(3);
  std::map<std::byte*, std::size_t> live;
  std::size_t most = 0;
  std::size_t now = 0;
  for (int step = 0; step < 40000 || !live.empty(); ++step) {
    if (step < 40000 && (live.size() < 50 || random() % 2 == 0)) {
      const std::size_t bytes = std::size_t{1} << random() % 20 | random() % 1000;
      auto* memory = static_cast<std::byte*>(heap_.allocate(bytes));
      ASSERT_NE(memory, nullptr) << heap_.why_not();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % line_bytes, 0u);
      const Mapping* const mapping = segment_.find(memory, bytes);
      ASSERT_NE(mapping, nullptr);
      EXPECT_EQ(segment_.find(mapping->address_of(memory), bytes), mapping);
      const auto above = live.lower_bound(memory);
      if (above != live.end()) {
        ASSERT_LE(memory + bytes, above->first);
      }
      if (above != live.begin()) {
        const auto below = std::prev(above);
        ASSERT_LE(below->first + below->second, memory);
      }
      std::memset(memory, 0xab, bytes);
      live[memory] = bytes;
      most = std::max(most, now += bytes);
    } else {
      auto victim = live.begin();
      std::advance(victim, static_cast<long>(random() % live.size()));
      now -= victim->second;
      heap_.free(victim->first);
      live.erase(victim);
    }
    ASSERT_LE(machine_.promised, 2 * most + (std::size_t{16} << 20));
  }
  EXPECT_EQ(heap_.used(), 0u);
  EXPECT_LE(machine_.promised, std::size_t{20} << 20) << "one arena is kept";
}

TEST_P(HeapTest, FreedMemoryIsReused) {
  void* first = heap_.allocate(100000);
  heap_.free(first);
  EXPECT_EQ(heap_.allocate(99000), first);
}

TEST_P(HeapTest, NeighboursAreJoinedInEveryOrder) {
  constexpr std::size_t fragment = Heap::large / 4;
  std::vector<int> order = {0, 1, 2, 3};
  void* const whole = heap_.allocate(Heap::large - 1);
  heap_.free(whole);
  do {
    std::vector<void*> body;
    for (std::size_t i = 0; i < order.size(); ++i)
      body.push_back(heap_.allocate(fragment));
    for (const int each : order)
      heap_.free(body[static_cast<std::size_t>(each)]);
    EXPECT_EQ(heap_.allocate(Heap::large - 1), whole);
    heap_.free(whole);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Windows that grow by a quarter, one at a time, take no more than the last of them.
// Among blocks that others have filled, whatever stood there before.
TEST_P(HeapTest, ZeroedBlocksAreZero) {
  std::mt19937 random(5);
  std::vector<void*> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.size() > 20) {
      std::swap(live[random() % live.size()], live.back());
      heap_.free(live.back());
      live.pop_back();
    }
    const std::size_t bytes = 1 + random() % (step % 100 == 0 ? 2 * Heap::large : 100'000);
    const bool zeroed = random() % 2 == 0;
    auto* const memory =
        static_cast<char*>(zeroed ? heap_.allocate_zeroed(bytes) : heap_.allocate(bytes));
    ASSERT_NE(memory, nullptr);
    if (zeroed) {
      ASSERT_EQ(std::count(memory, memory + bytes, 0), static_cast<long>(bytes)) << step;
    }
    std::memset(memory, 0xab, bytes);
    live.push_back(memory);
  }
  for (void* const memory : live)
    heap_.free(memory);
}

TEST_P(HeapTest, ZeroedBlocksTakeNoPagesBeforeTheyAreUsed) {
  const std::size_t before = machine_.pages();
  void* const memory = heap_.allocate_zeroed(Heap::large / 2);
  EXPECT_LE(machine_.pages() - before, std::size_t{64} << 10);
  heap_.free(memory);
}

TEST_P(HeapTest, LargeBlocksTakeThePlaceOfThoseBefore) {
  const std::uint64_t before = machine_.promised;
  for (std::size_t bytes = Heap::large; bytes < capacity / 2; bytes += bytes / 4) {
    void* const memory = heap_.allocate(bytes);
    ASSERT_NE(memory, nullptr) << heap_.why_not();
    EXPECT_LE(segment_.find(memory, bytes)->extent().offset, std::size_t{2} << 20);
    EXPECT_LE(machine_.promised, before + bytes + Extent::grain);
    heap_.free(memory);
    EXPECT_EQ(machine_.promised, before);
  }
}

TEST_P(HeapTest, PagesAreTakenWhenTouchedAndGivenBackWhenFreed) {
  constexpr std::size_t bytes = 20 << 20;
  void* memory = heap_.allocate(bytes);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(machine_.pages(), 0u);
  EXPECT_GE(heap_.used(), bytes);
  std::memset(memory, 1, bytes);
  if (GetParam() > 1) {
    EXPECT_GE(machine_.pages(), bytes);
  }
  heap_.free(memory);
  EXPECT_EQ(machine_.pages(), 0u);
  EXPECT_EQ(heap_.used(), 0u);
  memory = heap_.allocate(bytes);
  EXPECT_EQ(static_cast<std::byte*>(memory)[bytes / 2], std::byte{0});
}

TEST_P(HeapTest, NullIfTheMachineHasNoMoreAndAgainAfterFree) {
  machine_.memory = std::uint64_t{32} << 20;
  EXPECT_EQ(heap_.allocate(~std::size_t{0}), nullptr);
  std::vector<void*> blocks;
  while (void* memory = heap_.allocate(3 << 20))
    blocks.push_back(memory);
  EXPECT_NE(heap_.why_not().find("machine"), std::string::npos) << heap_.why_not();
  EXPECT_EQ(blocks.size(), 10u);
  heap_.free(blocks[3]);
  EXPECT_NE(heap_.allocate(3 << 20), nullptr);
}

TEST_P(HeapTest, FreeingWhatIsNoBlockIsRefused) {
  void* memory = heap_.allocate(100);
  void* behind = heap_.allocate(100);
  heap_.free(nullptr);
  heap_.free(memory);
  EXPECT_THROW(heap_.free(memory), base::Error);
  heap_.free(behind);
  EXPECT_THROW(heap_.free(behind), base::Error);
  void* const large = heap_.allocate(Heap::large);
  EXPECT_THROW(heap_.free(static_cast<std::byte*>(large) + line_bytes), base::Error);
  heap_.free(large);
  EXPECT_THROW(heap_.free(large), base::Error);
  EXPECT_THROW(heap_.free(segment_.front().base()), base::Error);
  int local = 0;
  EXPECT_THROW(heap_.free(&local), base::Error);
}

TEST(Heap, NullIfTheCapacityIsUsedUp) {
  Machine machine;
  Segment segment(machine, front);
  Heap heap(segment);
  EXPECT_EQ(heap.allocate(capacity), nullptr);
  EXPECT_NE(heap.why_not().find("can share"), std::string::npos) << heap.why_not();
  EXPECT_NE(heap.allocate(capacity - (4 << 20)), nullptr) << heap.why_not();
}

TEST(Heap, ALimitOnAddressesIsNamed) {
  Machine machine;
  Segment segment(machine, front);
  Heap heap(segment);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  std::size_t mapped = 0; // pages
  std::ifstream("/proc/self/statm") >> mapped;
  limit.rlim_cur = mapped * static_cast<std::size_t>(getpagesize()) + (8 << 20);
  setrlimit(RLIMIT_AS, &limit);
  void* const memory = heap.allocate(16 << 20);
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(memory, nullptr);
  const std::string kib = std::to_string(limit.rlim_cur >> 10) + " KiB";
  for (const std::string& said : {std::string("mapping 16384 KiB"), kib, std::string("ulimit -v")})
    EXPECT_NE(heap.why_not().find(said), std::string::npos) << heap.why_not();
  EXPECT_NE(heap.allocate(16 << 20), nullptr);
}

TEST(Extents, AreNamedByTheirKeys) {
  for (const Extent extent :
       {Extent{0, Extent::grain}, Extent{3 * Extent::grain, 5 * Extent::grain},
        Extent{std::uint64_t{1} << 44, std::uint64_t{1} << 43}}) {
    EXPECT_NE(extent.key(), 0u);
    EXPECT_EQ(Extent::of_key(extent.key()).offset, extent.offset);
    EXPECT_EQ(Extent::of_key(extent.key()).bytes, extent.bytes);
  }
  const Extent extent{Extent::grain, Extent::grain};
  EXPECT_TRUE(extent.holds(extent.offset, extent.bytes));
  EXPECT_TRUE(extent.holds(extent.end(), 0));
  EXPECT_FALSE(extent.holds(extent.offset - 1, 1));
  EXPECT_FALSE(extent.holds(extent.offset, extent.bytes + 1));
  EXPECT_FALSE(extent.holds(extent.offset, ~std::size_t{0}));
}

// A peer keeps what its owner has not replaced.
TEST(Mappings, WhatTakesTheirPlaceEndsThem) {
  Mappings mappings;
  const auto map = [&](std::uint64_t offset, std::uint64_t grains) {
    const Extent extent{offset * Extent::grain, grains * Extent::grain};
    mappings.add(Mapping(extent));
    return extent.key();
  };
  const std::uint64_t first = map(0, 2);
  const std::uint64_t second = map(2, 2);
  const std::uint64_t third = map(4, 4);
  EXPECT_EQ(mappings.find(second)->extent().key(), second);
  const std::uint64_t larger = map(2, 3);
  EXPECT_NE(mappings.find(first), nullptr);
  EXPECT_EQ(mappings.find(second), nullptr);
  EXPECT_EQ(mappings.find(third), nullptr);
  EXPECT_NE(mappings.find(larger), nullptr);
}

} // namespace
} // namespace macadam::net::shm::test
