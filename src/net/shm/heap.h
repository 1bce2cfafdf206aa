// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/segment.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace macadam::net::shm {

// Memory from a segment, for its owner. A large block is an extent of its own, which goes back to
// the system when it is freed. Small ones share extents (arenas), in which they are split off
// larger free blocks and joined again with free neighbours; an arena without blocks goes back too,
// but for one.
class Heap {
 public:
  // Blocks from this size on are large.
  static constexpr std::size_t large = std::size_t{1} << 20;

  // The segment outlives the heap.
  explicit Heap(Segment& segment) : segment_(segment) {}

  // Aligned to a cache line, a large one to a page. Null: why_not() tells.
  void* allocate(std::size_t bytes);
  // The same with zeros in it. What was never used has them, and keeps its pages untouched.
  void* allocate_zeroed(std::size_t bytes);
  // Throws MPI_ERR_ARG for what is no block.
  void free(void* memory);
  [[nodiscard]] const std::string& why_not() const { return segment_.why_not(); }

  // Bytes of all blocks.
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  // In the line in front of every small block.
  struct Block {
    enum class State : std::uint64_t { free = 0x66726565, used = 0x75736564 };

    std::uint64_t bytes;  // with this line
    std::uint64_t before; // of the block in front of it in its arena, 0: none is
    State state;
    bool last;  // of its arena
    bool clean; // nothing has stood in it since the arena came from the system
    Block* next_free;
    Block* previous_free;
  };
  static constexpr std::size_t classes = 80;

  static std::size_t class_of(std::uint64_t bytes);
  // The block that begins so many bytes behind this one.
  static Block& behind(Block& block, std::uint64_t bytes) {
    return *reinterpret_cast<Block*>(reinterpret_cast<std::byte*>(&block) + bytes);
  }
  static void* memory_of(Block& block) { return &behind(block, line_bytes); }
  void* allocate_large(std::size_t bytes);
  Block* allocate_block(std::size_t bytes);
  [[nodiscard]] Block* find_free(std::uint64_t bytes) const;
  Block* add_arena();
  void split(Block& block, std::uint64_t bytes);
  Block& join(Block& block);
  void list(Block& block);
  void unlist(Block& block);

  Segment& segment_;
  std::array<Block*, classes> free_ = {}; // by size, see class_of()
  std::uint64_t arenas_ = 0;              // bytes of all
  std::size_t empty_arenas_ = 0;
  std::size_t used_ = 0;
};

} // namespace macadam::net::shm
