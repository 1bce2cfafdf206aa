// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/slab.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace macadam::base {

// An id shortened to 27 bits, for where there is room for no more: unique as long as fewer than 128
// objects took the same place one after the other. 0 if the index is too large.
constexpr std::uint32_t short_id(std::uint64_t id) {
  const auto index = static_cast<std::uint32_t>(id);
  return index >> 20 != 0 ? 0 : static_cast<std::uint32_t>(id >> 32 & 0x7f) << 20 | index;
}

// Names for objects that travel on the wire: index and generation, never a pointer. A late packet
// that names an object already gone finds nothing.
template <class T>
class IdTable {
 public:
  // The id of `object` until remove(); the two top bits are never set. 0 if there is no memory.
  std::uint64_t try_add(T* object) noexcept {
    if (free_ == none && !grow()) [[unlikely]]
      return 0;
    const std::uint32_t index = free_;
    Row& row = rows_[index];
    free_ = row.next_free;
    row.object = object;
    return (std::uint64_t{row.generation} << 32) | index;
  }
  // The same. Throws std::bad_alloc.
  std::uint64_t add(T* object) {
    const std::uint64_t id = try_add(object);
    if (id == 0) [[unlikely]]
      throw std::bad_alloc();
    return id;
  }

  // Null if the id was removed or never given.
  [[nodiscard]] T* find(std::uint64_t id) const {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= rows_.size()) return nullptr;
    const Row& row = rows_[index];
    return row.generation == static_cast<std::uint32_t>(id >> 32) ? row.object : nullptr;
  }

  // The object whose id was shortened to this.
  [[nodiscard]] T* find_short(std::uint32_t name) const {
    const std::uint32_t index = name & 0xfffff;
    if (index >= rows_.size()) return nullptr;
    const Row& row = rows_[index];
    return (row.generation & 0x7f) == name >> 20 ? row.object : nullptr;
  }

  void remove(std::uint64_t id) noexcept {
    if (find(id) == nullptr) return;
    const auto index = static_cast<std::uint32_t>(id);
    Row& row = rows_[index];
    row.object = nullptr;
    if (++row.generation == 0x40000000u) row.generation = 1;
    row.next_free = std::exchange(free_, index);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Row {
    T* object = nullptr;
    std::uint32_t generation = 1;
    std::uint32_t next_free = none;
  };

  [[gnu::cold, gnu::noinline]] bool grow() noexcept {
    try {
      rows_.push_back({});
    } catch (const std::bad_alloc&) {
      return false;
    }
    free_ = static_cast<std::uint32_t>(rows_.size() - 1);
    return true;
  }

  std::vector<Row> rows_;
  std::uint32_t free_ = none; // the last one freed
};

// An object with its id, in `T::id`. Null if there is no memory.
template <class T, std::size_t ArenaObjects>
T* try_make(Slab<T, ArenaObjects>& slab, IdTable<T>& ids) noexcept {
  T* const made = slab.try_make();
  if (made == nullptr) return nullptr;
  made->id = ids.try_add(made);
  if (made->id != 0) [[likely]]
    return made;
  slab.free(made);
  return nullptr;
}

// The same. Throws std::bad_alloc.
template <class T, std::size_t ArenaObjects>
T& make(Slab<T, ArenaObjects>& slab, IdTable<T>& ids) {
  T* const made = try_make(slab, ids);
  if (made == nullptr) [[unlikely]]
    throw std::bad_alloc();
  return *made;
}

} // namespace macadam::base
