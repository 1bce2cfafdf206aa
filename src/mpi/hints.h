// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/info.h"

#include <algorithm>
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

  explicit Hints(std::span<const Known> known) {
    entries_.reserve(known.size());
    for (const Known& each : known)
      entries_.emplace_back(each.key, each.value);
  }

  // Takes the values that the user gives. One that `can_be` does not know, or null, is as if it
  // were not set.
  void take(const Info* info, bool (*can_be)(std::string_view key, std::string_view value)) {
    if (info == nullptr) return;
    for (auto& [key, value] : entries_) {
      const std::string* const wanted = info->find(key);
      if (wanted != nullptr && can_be(key, *wanted)) value = *wanted;
    }
  }

  // Of a key that is known.
  [[nodiscard]] const std::string& operator[](std::string_view key) const {
    const auto key_of = [](const auto& entry) { return std::string_view(entry.first); };
    return std::ranges::find(entries_, key, key_of)->second;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> entries() const {
    return {entries_.begin(), entries_.end()};
  }

 private:
  std::vector<std::pair<const char*, std::string>> entries_;
};

} // namespace macadam::mpi
