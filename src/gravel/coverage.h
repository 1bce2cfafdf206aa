// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace macadam::gravel {

// Which bytes of a buffer have been written, in fragments of any order. Fragments that follow each
// other are one range, so the usual pipeline takes no memory.
class Coverage {
 public:
  void add(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    auto first =
        std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                         [](const Range& range, std::size_t at) { return range.end < at; });
    auto last = first;
    for (; last != ranges_.end() && last->begin <= end; ++last) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    if (first == last) {
      ranges_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    ranges_.erase(first + 1, last);
  }

  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Range& range : ranges_)
      sum += range.end - range.begin;
    return sum;
  }
  // The first byte that is missing.
  [[nodiscard]] std::size_t gap() const {
    return ranges_.empty() || ranges_.front().begin != 0 ? 0 : ranges_.front().end;
  }

 private:
  struct Range {
    std::size_t begin, end;
  };
  std::vector<Range> ranges_; // ascending, apart from each other
};

} // namespace macadam::gravel
