// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace macadam::test {

// The choices of a run: past the end of `taken` the first alternative, and written down. With
// `random`: any, for programs that have too many orders to try all.
struct Choices {
  std::mt19937_64* random = nullptr;
  std::vector<std::pair<unsigned, unsigned>> taken; // which, of how many
  std::size_t at = 0;

  unsigned choose(unsigned of) {
    if (of < 2) return 0;
    if (random != nullptr) return static_cast<unsigned>((*random)() % of);
    if (at == taken.size()) taken.emplace_back(0, of);
    return taken[at++].first;
  }
  // The next run: false if all were tried.
  bool advance() {
    at = 0;
    while (!taken.empty() && taken.back().first + 1 == taken.back().second)
      taken.pop_back();
    if (taken.empty()) return false;
    ++taken.back().first;
    return true;
  }
};

} // namespace macadam::test
