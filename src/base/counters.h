// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>

namespace macadam::base {

// One counter as users see it (MPI_T performance variables, MACADAM_REPORT, `macadam info`).
struct Counter {
  const char* group; // what it belongs to: "protocol", "shm", ...
  const char* name;  // snake_case, unique: "eager_sent"
  const char* text;  // one line of help, with the unit
  const std::uint64_t* value;
};

// The counters of one process. A layer counts in plain members of its own (an increment, nothing
// else, on the fast path) and lists them here once.
class CounterList {
 public:
  void add(const char* group, const char* name, const char* text, const std::uint64_t& value) {
    rows_.push_back({group, name, text, &value});
  }
  [[nodiscard]] const std::deque<Counter>& rows() const { return rows_; }

 private:
  std::deque<Counter> rows_;
};

} // namespace macadam::base
