// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace macadam::base {

// Objects of one type from chunks that are never returned before the slab itself goes, so a stale
// handle still points into readable memory and is recognised as stale. Last freed, first reused:
// the object is still in the cache.
template <class T, std::size_t ChunkObjects = 64>
class Slab {
 public:
  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  template <class... Args>
  T* make(Args&&... args) {
    if (free_ == nullptr) [[unlikely]]
      grow();
    Cell* cell = free_;
    free_ = cell->next;
    ++live_;
    return new (cell->bytes) T(std::forward<Args>(args)...);
  }

  void free(T* object) {
    object->~T();
    Cell* cell = reinterpret_cast<Cell*>(object);
    cell->next = free_;
    free_ = cell;
    --live_;
  }

  // Objects made and not freed.
  [[nodiscard]] std::size_t live() const { return live_; }
  // Bytes held, used or not.
  [[nodiscard]] std::size_t bytes() const { return chunks_.size() * ChunkObjects * sizeof(Cell); }

 private:
  // The free link stands behind the object, so that the first words of a freed object (its kind)
  // stay readable.
  struct Cell {
    alignas(T) std::byte bytes[sizeof(T)];
    Cell* next;
  };

  [[gnu::cold, gnu::noinline]] void grow() {
    chunks_.push_back(std::make_unique_for_overwrite<Cell[]>(ChunkObjects));
    Cell* cells = chunks_.back().get();
    for (std::size_t i = ChunkObjects; i-- > 0;) {
      cells[i].next = free_;
      free_ = &cells[i];
    }
  }

  Cell* free_ = nullptr;
  std::size_t live_ = 0;
  std::vector<std::unique_ptr<Cell[]>> chunks_;
};

} // namespace macadam::base
