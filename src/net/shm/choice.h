// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace macadam::net::shm {

// Sizes within a factor of two are alike: to 16 KiB, 32 KiB, ..., from 1 MiB on.
inline constexpr std::size_t size_classes = 8;
constexpr std::size_t size_class(std::size_t bytes) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes - 1)), 14, 21) - 14;
}

// Which of two ways (the values 0 and 1 of an enumeration) to move data is the faster one between
// two processes: it depends on the size, the machine, and on which cores they are. Learned from the
// transfers themselves: the better way is taken, the other one now and then to see whether that is
// still so, the more seldom the slower it was.
template <class Way, unsigned explore_every>
class Choice {
 public:
  struct Turn {
    Way way;
    bool timed; // tell record() how long it took
  };

  Turn next(std::size_t bytes) {
    Class& c = class_of(bytes);
    const unsigned turn = c.turn++;
    if (turn < trials) return {static_cast<Way>(turn % 2), true};
    const unsigned better = c.seconds[0] <= c.seconds[1] ? 0 : 1;
    if (static_cast<std::int32_t>(turn - c.explore_at) < 0)
      return {static_cast<Way>(better), turn % time_every == 0};
    // So that looking costs less than one transfer in explore_every.
    const float slower = c.seconds[1 - better] / c.seconds[better]; // not a number if unknown
    c.explore_at =
        turn + explore_every * static_cast<unsigned>(slower < slowest ? slower : slowest);
    return {static_cast<Way>(1 - better), true};
  }

  // The better way so far; nothing is counted.
  [[nodiscard]] Way best(std::size_t bytes) const {
    const Class& c = classes_[size_class(bytes)];
    return static_cast<Way>(c.seconds[0] <= c.seconds[1] ? 0 : 1);
  }

  // Nothing is faster than it can be, but many things make a transfer slow that say little about
  // the way: memory touched for the first time, a core lost meanwhile. So a faster sample counts at
  // once, and slower ones little by little.
  void record(std::size_t bytes, Way way, double seconds) {
    float& best = class_of(bytes).seconds[static_cast<std::size_t>(way)];
    const auto sample = static_cast<float>(seconds / static_cast<double>(bytes));
    if (best == 0 || sample < best)
      best = sample;
    else
      best += (std::min(sample, 2 * best) - best) / 8;
  }

 private:
  static constexpr unsigned trials = 8; // at first, the ways in turn
  static constexpr unsigned time_every = 8;
  static constexpr float slowest = 64; // as far as that matters

  struct Class {
    float seconds[2] = {}; // a byte, by way; 0: unknown
    std::uint32_t turn = 0;
    std::uint32_t explore_at = explore_every;
  };
  Class& class_of(std::size_t bytes) { return classes_[size_class(bytes)]; }

  std::array<Class, size_classes> classes_;
};

// How private memory of another process is reached: in pieces through the segment by both
// processes, or copied by the kernel.
enum class Path : std::uint8_t { stream, cross_copy };
using PathChoice = Choice<Path, 64>;

} // namespace macadam::net::shm
