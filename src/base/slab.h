// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

  template <class... Args>
  T* make(Args&&... args) {
    if (free_ == nullptr) [[unlikely]]
      grow();
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
  // Bytes held, used or not.
  [[nodiscard]] std::size_t bytes() const { return arenas_.size() * ArenaObjects * sizeof(Slot); }

 private:
  // The free link stands behind the object, so that the first words of a freed object (its kind)
  // stay readable.
  struct Slot {
    alignas(T) std::byte bytes[sizeof(T)];
    Slot* next;
  };

  [[gnu::cold, gnu::noinline]] void grow() {
    arenas_.push_back(std::make_unique_for_overwrite<Slot[]>(ArenaObjects));
    Slot* slots = arenas_.back().get();
    for (std::size_t i = ArenaObjects; i-- > 0;) {
      slots[i].next = free_;
      free_ = &slots[i];
    }
  }

  Slot* free_ = nullptr;
  std::size_t live_ = 0;
  std::vector<std::unique_ptr<Slot[]>> arenas_;
};

} // namespace macadam::base
