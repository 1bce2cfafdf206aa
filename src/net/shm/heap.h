// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/segment.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace macadam::net::shm {

// Memory from a segment, for its owner. Blocks come in size classes, four to a doubling, and are
// reused within their class; large ones give their pages back to the system while they are free.
class Heap {
 public:
  Heap() = default;
  // Uses the range [start, end) of the segment, which outlives the heap.
  Heap(Segment& segment, std::uint64_t start, std::uint64_t end);

  // Aligned to a cache line. Null if the range is used up or the system has no memory.
  void* allocate(std::size_t bytes);
  void free(void* memory);

  // Bytes of the segment that hold pages of the system for blocks, free or not.
  [[nodiscard]] std::size_t committed() const { return committed_; }

 private:
  // In the line in front of every block.
  struct Block {
    std::uint32_t size_class;
    std::uint32_t in_use;
    std::uint64_t next_free; // offset of the next free block of the class, 0: none
  };
  static constexpr std::size_t classes = 4 * 48;

  Block& block(std::uint64_t offset) const {
    return *reinterpret_cast<Block*>(segment_->at(offset));
  }
  bool commit_up_to(std::uint64_t end);

  Segment* segment_ = nullptr;
  std::uint64_t unused_ = 0; // nothing was ever allocated from here on
  std::uint64_t ready_ = 0;  // committed up to here
  std::uint64_t end_ = 0;
  std::size_t committed_ = 0;
  std::array<std::uint64_t, classes> free_ = {}; // first free block of each class
};

} // namespace macadam::net::shm
