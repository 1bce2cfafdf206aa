// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "net/shm/heap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace macadam::net::shm {
namespace {

class HeapTest : public testing::Test {
 protected:
  static constexpr std::size_t capacity = std::size_t{64} << 20;
  static constexpr std::size_t start = 12345;

  HeapTest() : fd_(memfd_create("heap-test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, capacity), 0);
    segment_ = Segment(SharedMemory{fd_, 0, capacity});
    heap_ = Heap(segment_, start, capacity);
  }
  ~HeapTest() override { close(fd_); }

  // Bytes of the file that hold pages.
  std::size_t pages() const {
    struct stat status {};
    fstat(fd_, &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

  int fd_;
  Segment segment_;
  Heap heap_;
};

TEST_F(HeapTest, BlocksAreAlignedDisjointAndInTheRange) {
  std::mt19937 random(3);
  std::map<std::byte*, std::size_t> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 50 || random() % 2 == 0) {
      const std::size_t bytes = std::size_t{1} << random() % 18 | random() % 1000;
      auto* memory = static_cast<std::byte*>(heap_.allocate(bytes));
      if (memory == nullptr) continue;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % line_bytes, 0u);
      EXPECT_TRUE(segment_.contains(memory, bytes));
      EXPECT_GE(segment_.offset_of(memory), start);
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
    } else {
      auto victim = live.begin();
      std::advance(victim, static_cast<long>(random() % live.size()));
      heap_.free(victim->first);
      live.erase(victim);
    }
  }
}

TEST_F(HeapTest, FreedMemoryIsReused) {
  void* first = heap_.allocate(100000);
  heap_.free(first);
  EXPECT_EQ(heap_.allocate(99000), first);
}

TEST_F(HeapTest, NullWhenTheRangeIsUsedUpAndAgainAfterFree) {
  EXPECT_EQ(heap_.allocate(capacity), nullptr);
  EXPECT_EQ(heap_.allocate(~std::size_t{0}), nullptr);
  std::vector<void*> blocks;
  while (void* memory = heap_.allocate(3 << 20))
    blocks.push_back(memory);
  EXPECT_GE(blocks.size(), 15u);
  heap_.free(blocks.back());
  EXPECT_EQ(heap_.allocate(3 << 20), blocks.back());
}

TEST_F(HeapTest, LargeBlocksGiveTheirPagesBack) {
  constexpr std::size_t bytes = 20 << 20;
  void* memory = heap_.allocate(bytes);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, bytes);
  EXPECT_GE(pages(), bytes);
  EXPECT_GE(heap_.committed(), bytes);
  heap_.free(memory);
  EXPECT_LT(pages(), std::size_t{1} << 20);
  EXPECT_LT(heap_.committed(), std::size_t{1} << 20);
  memory = heap_.allocate(bytes);
  EXPECT_GE(pages(), bytes) << "pages must be taken before they are touched";
  std::memset(memory, 2, bytes);
}

TEST_F(HeapTest, PagesComeInSteps) {
  EXPECT_EQ(pages(), 0u);
  heap_.allocate(100);
  EXPECT_LE(pages(), std::size_t{512} << 10);
}

TEST_F(HeapTest, FreeingWhatIsNoBlockIsRefused) {
  void* memory = heap_.allocate(100);
  heap_.free(nullptr);
  heap_.free(memory);
  EXPECT_THROW(heap_.free(memory), base::Error);
  int local = 0;
  EXPECT_THROW(heap_.free(&local), base::Error);
}

TEST(Heap, NullWhenTheSystemHasNoMemory) {
  // Growing past the end of a sealed file is refused, as is memory past a container's limit.
  const int fd = memfd_create("heap-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
  Segment segment(SharedMemory{fd, 0, 8 << 20});
  Heap heap(segment, 0, 8 << 20);
  EXPECT_NE(heap.allocate(1000), nullptr);
  EXPECT_EQ(heap.allocate(4 << 20), nullptr);
  EXPECT_NE(heap.allocate(1000), nullptr);
  close(fd);
}

} // namespace
} // namespace macadam::net::shm
