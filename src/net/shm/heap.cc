// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/heap.h"

#include "base/error.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace macadam::net::shm {
namespace {

constexpr std::uint64_t smallest = 2 * line_bytes; // with the Block
// A new arena is as large as a quarter of all before, so that many blocks are in few arenas.
constexpr std::uint64_t smallest_arena = 2 * Heap::large;
constexpr std::uint64_t largest_arena = 64 * Heap::large;

} // namespace

// Four classes to a doubling; all blocks of a class are larger than any of those before.
std::size_t Heap::class_of(std::uint64_t bytes) {
  const auto doublings = static_cast<std::size_t>(std::bit_width(bytes) - 1);
  const std::size_t quarter = (bytes >> (doublings - 2)) & 3;
  constexpr auto first = static_cast<std::size_t>(std::bit_width(smallest) - 1);
  static_assert(4 * (std::bit_width(largest_arena) - first) <= classes);
  return 4 * (doublings - first) + quarter;
}

void Heap::list(Block& block) {
  Block*& first = free_[class_of(block.bytes)];
  block.state = Block::State::free;
  block.previous_free = nullptr;
  block.next_free = first;
  if (first != nullptr) first->previous_free = &block;
  first = &block;
}

void Heap::unlist(Block& block) {
  if (block.next_free != nullptr) block.next_free->previous_free = block.previous_free;
  if (block.previous_free != nullptr)
    block.previous_free->next_free = block.next_free;
  else
    free_[class_of(block.bytes)] = block.next_free;
}

// The first of its own class that is large enough, else any of the next class that has one.
Heap::Block* Heap::find_free(std::uint64_t bytes) const {
  const std::size_t own = class_of(bytes);
  for (Block* block = free_[own]; block != nullptr; block = block->next_free)
    if (block->bytes >= bytes) return block;
  const auto larger = std::find_if(free_.begin() + static_cast<std::ptrdiff_t>(own) + 1,
                                   free_.end(), [](Block* first) { return first != nullptr; });
  return larger != free_.end() ? *larger : nullptr;
}

Heap::Block* Heap::add_arena() {
  const Mapping* const mapping =
      segment_.add(std::clamp(arenas_ / 4, smallest_arena, largest_arena));
  if (mapping == nullptr) return nullptr;
  const std::uint64_t bytes = mapping->extent().bytes;
  arenas_ += bytes;
  ++empty_arenas_;
  auto* const block = new (mapping->base()) Block{bytes, 0, Block::State::free, true, true, {}, {}};
  list(*block);
  return block;
}

// Leaves a block of `bytes`; the rest is free.
void Heap::split(Block& block, std::uint64_t bytes) {
  const std::uint64_t rest = block.bytes - bytes;
  if (rest < smallest) return;
  Block& second = *new (&behind(block, bytes))
                      Block{rest, bytes, Block::State::free, block.last, block.clean, {}, {}};
  if (!second.last) behind(second, rest).before = rest;
  block.bytes = bytes;
  block.last = false;
  list(second);
}

// With its free neighbours, which leave their lists. It was used, or headers stood in it.
Heap::Block& Heap::join(Block& block) {
  Block* joined = &block;
  if (!block.last) {
    Block& after = behind(block, block.bytes);
    if (after.state == Block::State::free) {
      unlist(after);
      block.bytes += after.bytes;
      block.last = after.last;
    }
  }
  if (block.before != 0) {
    Block& before = *reinterpret_cast<Block*>(reinterpret_cast<std::byte*>(&block) - block.before);
    if (before.state == Block::State::free) {
      unlist(before);
      before.bytes += block.bytes;
      before.last = block.last;
      joined = &before;
    }
  }
  if (!joined->last) behind(*joined, joined->bytes).before = joined->bytes;
  joined->clean = false;
  return *joined;
}

void* Heap::allocate_large(std::size_t bytes) {
  const Mapping* const mapping = segment_.add(bytes);
  if (mapping == nullptr) return nullptr;
  used_ += mapping->extent().bytes;
  return mapping->base();
}

Heap::Block* Heap::allocate_block(std::size_t bytes) {
  const std::uint64_t size =
      std::max((bytes + 2 * line_bytes - 1) / line_bytes * line_bytes, smallest);
  Block* block = find_free(size);
  if (block == nullptr) block = add_arena();
  if (block == nullptr) return nullptr;
  if (block->before == 0 && block->last) --empty_arenas_;
  unlist(*block);
  split(*block, size);
  block->state = Block::State::used;
  used_ += block->bytes;
  return block;
}

void* Heap::allocate(std::size_t bytes) {
  if (bytes >= large) return allocate_large(bytes);
  Block* const block = allocate_block(bytes);
  if (block == nullptr) return nullptr;
  block->clean = false;
  return memory_of(*block);
}

void* Heap::allocate_zeroed(std::size_t bytes) {
  if (bytes >= large) return allocate_large(bytes); // comes from the system
  Block* const block = allocate_block(bytes);
  if (block == nullptr) return nullptr;
  if (!std::exchange(block->clean, false)) std::memset(memory_of(*block), 0, bytes);
  return memory_of(*block);
}

void Heap::free(void* memory) {
  if (memory == nullptr) return;
  const Mapping* const mapping = segment_.find(memory, 1);
  const bool whole = mapping != nullptr && memory == mapping->base();
  if (whole && mapping != &segment_.front()) {
    used_ -= mapping->extent().bytes;
    return segment_.remove(*mapping);
  }
  auto* const block = reinterpret_cast<Block*>(static_cast<std::byte*>(memory) - line_bytes);
  if (mapping == nullptr || whole || reinterpret_cast<std::uintptr_t>(memory) % line_bytes != 0 ||
      block->state != Block::State::used)
    base::fail(MPI_ERR_ARG, "shared memory: {} was freed, which is no allocated block", memory);
  used_ -= block->bytes;
  block->state = Block::State::free;
  Block& joined = join(*block);
  if (joined.before == 0 && joined.last) {
    if (empty_arenas_ > 0) {
      arenas_ -= joined.bytes;
      return segment_.remove(*mapping);
    }
    ++empty_arenas_;
  }
  list(joined);
}

} // namespace macadam::net::shm
