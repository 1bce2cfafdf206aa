// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/segment.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// Long data pass from one process to another through cells, pieces of memory that both map. Every
// process lays some out. Who sends takes a free one, of its own or of the receiver's, and says so
// in a message; who has copied the data out frees it.
//
// Answers go through the cells that data have just come through. Both cores have these lines in
// their caches: writing them takes them from one other cache, reading them fetches them from there.
// Other lines would have to come from further away, and push out what the application works with.
namespace macadam::net::shm {

// How a process has cut its memory for cells.
struct CellPlan {
  std::uint64_t offset = 0; // of the words of all cells in its segment; behind them the cells
  std::uint32_t bytes = 0;  // of one cell, a multiple of a line
  std::uint32_t count = 0;
};

// The cells of one process.
class Cells {
 public:
  static constexpr std::uint32_t most = 32;

  Cells() = default;
  // In memory that outlives them and is zero at first.
  Cells(std::byte* front, const CellPlan& plan)
      : words_(front + plan.offset), data_(words_ + plan.count * line_bytes), plan_(plan) {}

  static constexpr std::size_t memory_bytes(const CellPlan& plan) {
    return std::size_t{plan.count} * (line_bytes + plan.bytes);
  }

  [[nodiscard]] std::uint32_t count() const { return plan_.count; }
  [[nodiscard]] std::uint32_t cell_bytes() const { return plan_.bytes; }
  [[nodiscard]] std::byte* data(std::uint32_t cell) const {
    return data_ + std::size_t{cell} * plan_.bytes;
  }

  // Takes a cell for `holder`; false if it is not free.
  [[nodiscard]] bool take(std::uint32_t cell, Rank holder) const {
    std::uint32_t nobody = 0;
    const auto at = word(cell);
    return at.load(std::memory_order_relaxed) == nobody &&
           at.compare_exchange_strong(nobody, holder + 1, std::memory_order_acquire);
  }
  [[nodiscard]] bool held_by(std::uint32_t cell, Rank holder) const {
    return word(cell).load(std::memory_order_relaxed) == holder + 1;
  }
  void free(std::uint32_t cell) const { word(cell).store(0, std::memory_order_release); }

 private:
  // The rank that took the cell + 1, 0: it is free. In a line of its own.
  [[nodiscard]] std::atomic_ref<std::uint32_t> word(std::uint32_t cell) const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_ + cell * line_bytes));
  }

  std::byte* words_ = nullptr;
  std::byte* data_ = nullptr;
  CellPlan plan_;
};

// Names a cell within a pair of processes.
struct CellName {
  std::uint8_t cell = 0;
  bool ours = false; // or the peer's
};

// The cells through which a peer's data came last: few, so that they stay in the caches. They are
// taken again in the order of their use, so that long pieces meet long ones; of what is left over,
// the last first.
class WarmCells {
 public:
  void add(CellName cell) {
    if (count_ == cells_.size()) remove(0);
    cells_[count_++] = cell;
    fresh_ = std::min(fresh_ + 1, count_);
  }
  // False if there is none.
  bool take(CellName& cell) {
    if (count_ == 0) return false;
    const std::size_t at = count_ - std::max<std::size_t>(fresh_, 1);
    if (fresh_ > 0) --fresh_;
    cell = cells_[at];
    remove(at);
    return true;
  }

 private:
  void remove(std::size_t at) {
    std::move(cells_.begin() + at + 1, cells_.begin() + count_, cells_.begin() + at);
    --count_;
  }

  std::array<CellName, 8> cells_;
  std::size_t count_ = 0;
  std::size_t fresh_ = 0; // of these, added since cells were taken
};

} // namespace macadam::net::shm
