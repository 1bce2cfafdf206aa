// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/heap.h"

#include "base/error.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <iterator>
#include <new>

namespace macadam::net::rdma {

void* Heap::allocate(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  const auto size_class = static_cast<unsigned>(std::countr_zero(size / smallest));
  if (size_class >= classes) {
    Chunk* const own = grow(model::round_up(bytes, model::page), classes);
    return own == nullptr ? nullptr : own->memory.get();
  }
  if (free_[size_class] == nullptr) {
    Chunk* const chunk = grow(std::max(size, chunk_bytes), size_class);
    if (chunk == nullptr) return nullptr;
    for (std::size_t at = chunk->bytes; at > 0; at -= size)
      free_[size_class] = new (chunk->memory.get() + at - size) FreeBlock{free_[size_class]};
  }
  FreeBlock* const block = free_[size_class];
  free_[size_class] = block->next;
  return block;
}

void Heap::free(void* memory) {
  if (memory == nullptr) return;
  const auto chunk = chunk_of(memory);
  const unsigned size_class = chunk->second.size_class;
  if (size_class == classes) {
    bytes_ -= chunk->second.bytes;
    chunks_.erase(chunk);
    return;
  }
  free_[size_class] = new (memory) FreeBlock{free_[size_class]};
}

const MemoryRegion* Heap::find(const void* memory) const {
  const auto chunk = chunk_of(memory);
  return chunk == chunks_.end() ? nullptr : chunk->second.region.get();
}

Heap::Chunk* Heap::grow(std::size_t bytes, unsigned size_class) {
  if (bytes_ + bytes > limit) {
    refusal_ =
        fmt::format("RDMA: {} has registered {} bytes of it, and {} more would exceed the {} "
                    "that a rank may have; free some (MPI_Free_mem, MPI_Win_free), or give "
                    "MPI_Win_create memory of your own",
                    device_.name(), bytes_, bytes, limit);
    return nullptr;
  }
  Chunk chunk;
  try {
    chunk.memory = allocate_pages(bytes, "memory that peers reach");
    chunk.region = device_.register_memory(chunk.memory.get(), bytes, Access::remote);
  } catch (const base::Error& error) {
    refusal_ = error.text;
    return nullptr;
  }
  chunk.bytes = bytes;
  chunk.size_class = size_class;
  bytes_ += bytes;
  const auto address = reinterpret_cast<std::uintptr_t>(chunk.memory.get());
  return &chunks_.emplace(address, std::move(chunk)).first->second;
}

std::map<std::uintptr_t, Heap::Chunk>::const_iterator Heap::chunk_of(const void* memory) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = chunks_.upper_bound(address);
  if (after == chunks_.begin()) return chunks_.end();
  const auto chunk = std::prev(after);
  return address < chunk->first + chunk->second.bytes ? chunk : chunks_.end();
}

} // namespace macadam::net::rdma
