// SPDX-License-Identifier: BSD-3-Clause
// Copies by the kernel of many blocks in a call. A process may copy from itself.
#include "net/shm/bulk/copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <vector>

namespace macadam::net::shm::test {
namespace {

// Cuts `bytes` bytes into blocks of these lengths, in turn, with a gap behind each.
std::vector<iovec> cut(std::vector<unsigned char>& memory, std::size_t bytes,
                       std::vector<std::size_t> lengths, std::size_t gap) {
  std::vector<iovec> blocks;
  std::size_t at = 0;
  for (std::size_t i = 0; bytes > 0; ++i) {
    const std::size_t length = std::min(bytes, lengths[i % lengths.size()]);
    blocks.push_back({memory.data() + at, length});
    at += length + gap;
    bytes -= length;
  }
  EXPECT_LE(at, memory.size());
  EXPECT_LE(blocks.size(), most_blocks);
  return blocks;
}

std::vector<unsigned char> gathered(const std::vector<iovec>& blocks) {
  std::vector<unsigned char> all;
  for (const iovec& block : blocks) {
    const auto* const data = static_cast<const unsigned char*>(block.iov_base);
    all.insert(all.end(), data, data + block.iov_len);
  }
  return all;
}

TEST(Blocks, AreCutOtherwiseOnEitherSide) {
  constexpr std::size_t bytes = 3000;
  for (const Direction direction : {Direction::write, Direction::read}) {
    std::vector<unsigned char> ours(20000), theirs(20000);
    const auto here = cut(ours, bytes, {3, 5, 1}, 7);
    const auto there = cut(theirs, bytes, {100, 4, 1000}, 1);
    auto& source = direction == Direction::write ? ours : theirs;
    std::iota(source.begin(), source.end(), static_cast<unsigned char>(1));
    auto here_left = here, there_left = there;
    EXPECT_EQ(cross_copy(real_system(), direction, getpid(), here_left, there_left), 0);
    EXPECT_EQ(gathered(here), gathered(there));
  }
}

// The kernel stops at a block that is not there: the rest is asked for again, and refused.
TEST(Blocks, OneThatIsNotThereIsTold) {
  std::vector<unsigned char> ours(3000, 7), theirs(3000, 0);
  void* const hole = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  std::array<iovec, 1> here = {{{ours.data(), 3000}}};
  std::array<iovec, 3> there = {
      {{theirs.data(), 1000}, {hole, 1000}, {theirs.data() + 2000, 1000}}};
  EXPECT_EQ(cross_copy(real_system(), Direction::write, getpid(), here, there), EFAULT);
  EXPECT_EQ(theirs[999], 7);
  EXPECT_EQ(theirs[2000], 0);
  munmap(hole, 4096);
}

} // namespace
} // namespace macadam::net::shm::test
