// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/try_push.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace macadam::engine {

// Contexts that are over. They are never used again, so the set only grows; but each leader numbers
// the contexts of its communicators one after the other, so neighbours join and it stays short.
class ContextSet {
 public:
  // Without memory one may be missing.
  void add(std::uint64_t context) noexcept {
    if (contains(context)) return;
    const auto next = ranges_.begin() + after(context);
    const bool joins_next = next != ranges_.end() && next->first == context + 1;
    if (next != ranges_.begin() && std::prev(next)->last + 1 == context) {
      std::prev(next)->last = joins_next ? next->last : context;
      if (joins_next) ranges_.erase(next);
    } else if (joins_next) {
      next->first = context;
    } else {
      base::try_insert(ranges_, next, {context, context});
    }
  }
  [[nodiscard]] bool contains(std::uint64_t context) const {
    if (ranges_.empty()) [[likely]]
      return false;
    const auto next = ranges_.begin() + after(context);
    return next != ranges_.begin() && context <= std::prev(next)->last;
  }
  [[nodiscard]] std::size_t memory_bytes() const { return ranges_.capacity() * sizeof(Range); }

 private:
  struct Range {
    std::uint64_t first, last;
  };
  // The place of the first range that begins behind this context.
  [[nodiscard]] std::ptrdiff_t after(std::uint64_t context) const {
    const auto later = [](std::uint64_t c, const Range& range) { return c < range.first; };
    return std::upper_bound(ranges_.begin(), ranges_.end(), context, later) - ranges_.begin();
  }

  std::vector<Range> ranges_; // in order, with gaps between them
};

} // namespace macadam::engine
