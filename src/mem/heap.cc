// SPDX-License-Identifier: BSD-3-Clause
#include "mem/heap.h"

#include "base/error.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <iterator>
#include <new>

namespace macadam::mem {

void* Heap::allocate(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  const auto size_class = static_cast<unsigned>(std::countr_zero(size / smallest));
  if (size_class >= classes) {
    Arena* const own = grow(round_up(bytes, page), classes);
    return own == nullptr ? nullptr : own->memory.get();
  }
  if (free_[size_class] == nullptr) {
    Arena* const arena = grow(std::max(size, arena_bytes), size_class);
    if (arena == nullptr) return nullptr;
    for (std::size_t at = arena->bytes; at > 0; at -= size)
      free_[size_class] = new (arena->memory.get() + at - size) FreeBlock{free_[size_class]};
  }
  FreeBlock* const block = free_[size_class];
  free_[size_class] = block->next;
  return block;
}

void Heap::free(void* memory) {
  if (memory == nullptr) return;
  const auto arena = arena_of(memory);
  const unsigned size_class = arena->second.size_class;
  if (size_class == classes) {
    bytes_ -= arena->second.bytes;
    arenas_.erase(arena);
    return;
  }
  free_[size_class] = new (memory) FreeBlock{free_[size_class]};
}

const MemoryRegion* Heap::find(const void* memory) const {
  const auto arena = arena_of(memory);
  return arena == arenas_.end() ? nullptr : arena->second.region.get();
}

Heap::Arena* Heap::grow(std::size_t bytes, unsigned size_class) {
  if (bytes_ + bytes > limit) {
    refusal_ = fmt::format("{} has registered {} bytes of it, and {} more would exceed the {} "
                           "that a rank may have; free some (MPI_Free_mem, MPI_Win_free), or give "
                           "MPI_Win_create memory of your own",
                           device_.name(), bytes_, bytes, limit);
    return nullptr;
  }
  Arena arena;
  try {
    arena.memory = allocate_pages(bytes, "memory that peers reach");
    arena.region = device_.register_memory(arena.memory.get(), bytes, Access::remote);
  } catch (const base::Error& error) {
    refusal_ = error.text;
    return nullptr;
  }
  arena.bytes = bytes;
  arena.size_class = size_class;
  bytes_ += bytes;
  const auto address = reinterpret_cast<std::uintptr_t>(arena.memory.get());
  return &arenas_.emplace(address, std::move(arena)).first->second;
}

std::map<std::uintptr_t, Heap::Arena>::const_iterator Heap::arena_of(const void* memory) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = arenas_.upper_bound(address);
  if (after == arenas_.begin()) return arenas_.end();
  const auto arena = std::prev(after);
  return address < arena->first + arena->second.bytes ? arena : arenas_.end();
}

} // namespace macadam::mem
