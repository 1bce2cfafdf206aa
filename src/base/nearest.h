// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace macadam::base {

// Letters to insert, delete or replace to get from one word to the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

// What was probably meant by a misspelt name: the element of a range, not empty, whose name
// `name_of` says is nearest.
template <class Range, class NameOf>
const auto& nearest(const Range& range, std::string_view name, NameOf&& name_of) {
  return *std::min_element(range.begin(), range.end(), [&](const auto& a, const auto& b) {
    return edit_distance(name_of(a), name) < edit_distance(name_of(b), name);
  });
}

} // namespace macadam::base
