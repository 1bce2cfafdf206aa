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
template <class Way>
class Choice {
 public:
  struct Turn {
    Way way;
    bool timed; // tell record() how long it took
  };

  Turn next(std::size_t bytes) {
    Class& c = class_of(bytes);
    ++c.turn;
    if (c.seconds[0] == 0) return {Way{0}, true};
    if (c.seconds[1] == 0) return {Way{1}, true};
    const bool explore = c.turn % explore_every == 0;
    const bool first = (c.seconds[0] <= c.seconds[1]) != explore;
    return {first ? Way{0} : Way{1}, c.turn % time_every == 0};
  }

  void record(std::size_t bytes, Way way, double seconds) {
    float& mean = class_of(bytes).seconds[static_cast<std::size_t>(way)];
    const auto sample = static_cast<float>(seconds / static_cast<double>(bytes));
    // A process that lost its core meanwhile says little about the way: one sample counts for
    // twice the mean at most.
    mean = mean == 0 ? sample : mean + (std::min(sample, 2 * mean) - mean) / 4;
  }

 private:
  static constexpr std::uint8_t time_every = 8;
  static constexpr std::uint8_t explore_every = 64;
  static_assert(explore_every % time_every == 0);

  // Sizes within a factor of two: to 16 KiB, 32 KiB, ..., from 1 MiB on.
  struct Class {
    float seconds[2] = {}; // a byte, by way; 0: unknown
    std::uint8_t turn = 0;
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
