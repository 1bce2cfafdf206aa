// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string_view>

namespace macadam::base {

// One counter as users see it (MPI_T performance variables, MACADAM_REPORT, `macadam info`).
struct Counter {
  const char* group; // what it belongs to: "protocol", "shm", ...
  const char* name;  // snake_case, unique: "eager_sent"
  const char* text;  // one line of help, with the unit
  const std::uint64_t* value;
  std::uint64_t before = 0; // counted by earlier layers, which have ended

  // The highest that something has been; all others grow, but for what is taken back at once.
  [[nodiscard]] bool is_watermark() const { return std::string_view(name).ends_with("_most"); }
  // Of the whole life of the process.
  [[nodiscard]] std::uint64_t total() const {
    return is_watermark() ? std::max(before, *value) : before + *value;
  }
};

// The counters of one process. A layer counts in plain members of its own (an increment, nothing
// else, on the fast path) and lists them here once. Rows stay where they are.
class CounterList {
 public:
  void add(const char* group, const char* name, const char* text, const std::uint64_t& value) {
    const auto kept = std::ranges::find_if(rows_, [&](const Counter& row) {
      return row.value == &none && std::string_view(row.group) == group &&
             std::string_view(row.name) == name;
    });
    if (kept == rows_.end())
      rows_.push_back({group, name, text, &value});
    else
      kept->value = &value;
  }
  // The layers end.
  void keep_totals() {
    for (Counter& row : rows_) {
      row.before = row.total();
      row.value = &none;
    }
  }
  [[nodiscard]] const std::deque<Counter>& rows() const { return rows_; }

 private:
  static constexpr std::uint64_t none = 0; // of what nobody counts now

  std::deque<Counter> rows_;
};

} // namespace macadam::base
