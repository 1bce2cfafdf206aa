// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/info.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace macadam::mpi {

// The hints of a communicator, a window or a file: those that mean something here, each with a
// value at any time.
class Hints {
 public:
  struct Known {
    const char* key;
    const char* value; // if the user does not set it
  };

  // `known` outlives it.
  explicit Hints(std::span<const Known> known) : known_(known) {}

  // Takes the values that the user gives. One that `can_be` does not know, or null, is as if it
  // were not set.
  void take(const Info* info, bool (*can_be)(std::string_view key, std::string_view value)) {
    if (info == nullptr) return;
    for (const Known& each : known_) {
      const std::string* const wanted = info->find(each.key);
      if (wanted != nullptr && can_be(each.key, *wanted)) given_[each.key] = *wanted;
    }
  }

  // Of a key that is known.
  [[nodiscard]] std::string_view operator[](std::string_view key) const {
    if (const auto given = given_.find(key); given != given_.end()) return given->second;
    return std::ranges::find(known_, key,
                             [](const Known& each) { return std::string_view(each.key); })
        ->value;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> entries() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const Known& each : known_)
      all.emplace_back(each.key, (*this)[each.key]);
    return all;
  }

 private:
  std::span<const Known> known_;
  std::map<std::string_view, std::string> given_; // few objects have any
};

} // namespace macadam::mpi
