// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace macadam::base {

// Copies bytes that do not overlap; a few of them without a call.
[[gnu::always_inline]] inline void copy_small(std::byte* to, const std::byte* from,
                                              std::size_t bytes) {
  const auto overlapping = [&](auto width) {
    decltype(width) first;
    decltype(width) last;
    std::memcpy(&first, from, sizeof width);
    std::memcpy(&last, from + bytes - sizeof width, sizeof width);
    std::memcpy(to, &first, sizeof width);
    std::memcpy(to + bytes - sizeof width, &last, sizeof width);
  };
  struct Sixteen {
    std::uint64_t words[2];
  };
  if (bytes > 32)
    std::memcpy(to, from, bytes);
  else if (bytes >= 16)
    overlapping(Sixteen{});
  else if (bytes >= 8)
    overlapping(std::uint64_t{});
  else if (bytes >= 4)
    overlapping(std::uint32_t{});
  else if (bytes >= 2)
    overlapping(std::uint16_t{});
  else if (bytes == 1)
    *to = *from;
}

} // namespace macadam::base
