// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace macadam::sim {

// A bijection that leaves no pattern (the finaliser of splitmix64).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Random numbers that are the same on every machine and with every library, which the
// distributions of <random> are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(scramble(seed)) {}

  std::uint64_t next() { return scramble(state_++); }
  // From 0 to 1, without 1.
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return probability > 0 && fraction() < probability; }
  // From 0 to `bound`, without `bound`, which is positive.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

} // namespace macadam::sim
