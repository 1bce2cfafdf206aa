// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// What lies in the memory of a program's operations.
namespace macadam::prove {

inline constexpr unsigned char untouched = 0xee, reused = 0xdd;
inline constexpr std::uint64_t first_context = 4;

inline std::uint64_t context_of(const Step& step) {
  return first_context + static_cast<std::uint64_t>(step.context);
}

// The memory of an operation that has ended, however, is its user's, who uses it.
inline void reuse(std::vector<unsigned char>& memory) {
  std::ranges::fill(memory, reused);
}

// The bytes of a message; neighbours differ, and so do messages.
inline unsigned char content(int message, std::size_t i) {
  return static_cast<unsigned char>((static_cast<std::size_t>(message) * 37 + i * 5 + 1) % 200);
}

// Where byte `i` of the data lies in the user's memory.
inline std::size_t place(std::size_t i, bool noncontiguous) {
  return noncontiguous ? i / 4 * 6 + i % 4 + (i % 4 >= 2 ? 2 : 0) : i;
}

} // namespace macadam::prove
