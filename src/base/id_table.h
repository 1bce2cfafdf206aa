// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
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
  // The id of `object` until remove(). Never 0; the two top bits are never set.
  std::uint64_t add(T* object) {
    if (free_.empty()) {
      rows_.push_back({});
      free_.push_back(static_cast<std::uint32_t>(rows_.size() - 1));
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    rows_[index].object = object;
    return (std::uint64_t{rows_[index].generation} << 32) | index;
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

  void remove(std::uint64_t id) {
    if (find(id) == nullptr) return;
    const auto index = static_cast<std::uint32_t>(id);
    rows_[index].object = nullptr;
    if (++rows_[index].generation == 0x40000000u) rows_[index].generation = 1;
    free_.push_back(index);
  }

 private:
  struct Row {
    T* object = nullptr;
    std::uint32_t generation = 1;
  };
  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_;
};

} // namespace macadam::base
