// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace macadam::base {

// Objects of one type from arenas that are never returned before the slab itself goes, so a stale
// handle still points into readable memory and is recognised as stale. Last freed, first reused:
// the object is still in the cache.
template <class T, std::size_t ArenaObjects = 64>
class Slab {
 public:
  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Throws std::bad_alloc.
  template <class... Args>
  T* make(Args&&... args) {
    if (T* const made = try_make(std::forward<Args>(args)...)) [[likely]]
      return made;
    throw std::bad_alloc();
  }
  // Null if there is no memory.
  template <class... Args>
  T* try_make(Args&&... args) {
    if (free_ == nullptr && !grow()) [[unlikely]]
      return nullptr;
    Slot* slot = free_;
    free_ = slot->next;
    ++live_;
    return new (slot->bytes) T(std::forward<Args>(args)...);
  }

  void free(T* object) {
    object->~T();
    Slot* slot = reinterpret_cast<Slot*>(object);
    slot->next = free_;
    free_ = slot;
    --live_;
  }

  // Objects made and not freed.
  [[nodiscard]] std::size_t live() const { return live_; }
  // Bytes that were touched, used or not: the rest takes no memory, but what is in the last of
  // their pages, half a page on average.
  [[nodiscard]] std::size_t bytes() const {
    return (arenas_.size() * ArenaObjects - untouched_) * sizeof(Slot) +
           std::min(untouched_ * sizeof(Slot), page / 2);
  }

 private:
  // The free link stands behind the object, so that the first words of a freed object (its kind)
  // stay readable.
  struct Slot {
    alignas(T) std::byte bytes[sizeof(T)];
    Slot* next;
  };

  // Objects that are linked at once: those of a page, as a page takes memory once it is touched.
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t linked_at_once = page / sizeof(Slot) + 1;

  [[gnu::cold, gnu::noinline]] bool grow() noexcept {
    if (untouched_ == 0) {
      try {
        arenas_.push_back(std::make_unique_for_overwrite<Slot[]>(ArenaObjects));
      } catch (const std::bad_alloc&) {
        return false;
      }
      untouched_ = ArenaObjects;
    }
    Slot* const slots = arenas_.back().get() + ArenaObjects - untouched_;
    const std::size_t linked = std::min(untouched_, linked_at_once);
    untouched_ -= linked;
    for (std::size_t i = linked; i-- > 0;) {
      slots[i].next = free_;
      free_ = &slots[i];
    }
    return true;
  }

  Slot* free_ = nullptr;
  std::size_t live_ = 0;
  std::size_t untouched_ = 0; // at the end of the last arena
  std::vector<std::unique_ptr<Slot[]>> arenas_;
};

} // namespace macadam::base
