// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace macadam::coll {

// Memory for coroutine frames, kept by size for the next collective: starting one allocates
// nothing. All frames must have been given back before the pool goes. Not thread safe.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool();

  // Aligned for any object. Throws std::bad_alloc.
  void* take(std::size_t bytes) {
    const std::size_t size_class = (bytes + granule - 1) / granule;
    if (size_class < classes && free_[size_class] != nullptr) [[likely]] {
      Block* block = free_[size_class];
      free_[size_class] = block->next;
      block->pool = this;
      return block + 1;
    }
    return allocate(size_class);
  }

  // Gives back what some pool's take() returned.
  static void give(void* frame) noexcept {
    Block* block = static_cast<Block*>(frame) - 1;
    FramePool* pool = block->pool;
    if (block->size_class >= classes) [[unlikely]] {
      ::operator delete(block);
      return;
    }
    block->next = pool->free_[block->size_class];
    pool->free_[block->size_class] = block;
  }

 private:
  // Stands before each frame; in use it names the pool, free it links to the next.
  struct alignas(std::max_align_t) Block {
    union {
      FramePool* pool;
      Block* next;
    };
    std::size_t size_class;
  };
  static constexpr std::size_t granule = 64;
  static constexpr std::size_t classes = 64; // frames up to 4 KiB are kept

  void* allocate(std::size_t size_class);

  std::array<Block*, classes> free_ = {};
};

} // namespace macadam::coll
