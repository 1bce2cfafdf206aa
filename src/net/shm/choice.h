// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace macadam::net::shm {

// Which of two ways (the values 0 and 1 of an enumeration) to move data is the faster one between
// two processes: it depends on the size, the machine, and on which cores they are. Learned from the
// transfers themselves: the better way is taken, the other one now and then to see whether that is
// still so.
template <class Way, unsigned explore_every = 64>
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
    const bool explore = turn % explore_every == 0;
    const bool first = (c.seconds[0] <= c.seconds[1]) != explore;
    const auto way = static_cast<Way>(first ? 0 : 1);
    return {way, turn % time_every == 0};
  }

  // Nothing is faster than it can be, but many things make a transfer slow that say little about
  // the way: memory touched for the first time, a core lost meanwhile. So a faster sample counts at
  // once, and slower ones little by little.
  void record(std::size_t bytes, Way way, double seconds) { record(bytes, bytes, way, seconds); }

  // The same for a piece of a transfer.
  void record(std::size_t bytes, std::size_t piece, Way way, double seconds) {
    float& best = class_of(bytes).seconds[static_cast<std::size_t>(way)];
    const auto sample = static_cast<float>(seconds / static_cast<double>(piece));
    if (best == 0 || sample < best)
      best = sample;
    else
      best += (std::min(sample, 2 * best) - best) / 8;
  }

 private:
  static constexpr unsigned trials = 8; // at first, the ways in turn
  static constexpr unsigned time_every = 8;
  static_assert(explore_every % time_every == 0);

  // Sizes within a factor of two: to 16 KiB, 32 KiB, ..., from 1 MiB on.
  struct Class {
    float seconds[2] = {}; // a byte, by way; 0: unknown
    std::uint16_t turn = 0;
  };
  Class& class_of(std::size_t bytes) {
    const auto width = static_cast<std::size_t>(std::bit_width(bytes - 1));
    return classes_[std::clamp<std::size_t>(width, 14, 21) - 14];
  }

  std::array<Class, 8> classes_;
};

// How private memory of another process is reached: in pieces through the segment by both
// processes, or copied by the kernel.
enum class Path : std::uint8_t { stream, cross_copy };
using PathChoice = Choice<Path>;

} // namespace macadam::net::shm
