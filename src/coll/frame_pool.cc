// SPDX-License-Identifier: BSD-3-Clause
#include "coll/frame_pool.h"

namespace macadam::coll {

FramePool::~FramePool() {
  for (Block* block : free_) {
    while (block != nullptr) {
      Block* next = block->next;
      ::operator delete(block);
      block = next;
    }
  }
}

void* FramePool::allocate(std::size_t size_class) {
  auto* block = static_cast<Block*>(::operator new(sizeof(Block) + size_class * granule));
  block->pool = this;
  block->size_class = size_class;
  return block + 1;
}

} // namespace macadam::coll
