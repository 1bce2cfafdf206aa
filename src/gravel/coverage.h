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
    if (bytes_ == 0) only_.begin = only_.end = begin;
    if (only_.end == begin && ranges_.empty()) {
      only_.end = end;
      bytes_ += end - begin;
    } else {
      add_apart({begin, end});
    }
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // The first byte that is missing.
  [[nodiscard]] std::size_t gap() const {
    const Range& first = ranges_.empty() ? only_ : ranges_.front();
    return bytes_ == 0 || first.begin != 0 ? 0 : first.end;
  }

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };

  void add_apart(Range added) {
    if (ranges_.empty()) ranges_.push_back(only_);
    auto first =
        std::lower_bound(ranges_.begin(), ranges_.end(), added.begin,
                         [](const Range& range, std::size_t at) { return range.end < at; });
    auto last = first;
    for (; last != ranges_.end() && last->begin <= added.end; ++last) {
      added.begin = std::min(added.begin, last->begin);
      added.end = std::max(added.end, last->end);
      bytes_ -= last->end - last->begin;
    }
    bytes_ += added.end - added.begin;
    if (first == last) {
      ranges_.insert(first, added);
    } else {
      *first = added;
      ranges_.erase(first + 1, last);
    }
  }

  std::size_t bytes_ = 0;     // of all
  Range only_;                // while there is but one range
  std::vector<Range> ranges_; // else all, ascending, apart from each other
};

} // namespace macadam::gravel
