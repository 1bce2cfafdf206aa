// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// All data of a program that the library itself copies go through copy(), but for the loops that
// pack and reduce, which say touched(); cmake/check_copies.py refuses other ways. The simulator
// has its own of the functions below, which charge the time (sim/charges.cc), so that
// no copy is free there. Here they cost a jump for more than a few bytes, and nothing for these.
namespace macadam::base {

// memmove() of any length.
void copy_many(void* to, const void* from, std::size_t bytes);

// The same for memory that other cores have read last and will read next, and that does not
// overlap: past the caches, as to take its lines back from theirs may take several times as long as
// to write to memory.
void copy_past_caches(void* to, const void* from, std::size_t bytes);

// So many bytes were read or written one by one, in another way than by copy().
void touched(std::size_t bytes);

// So few copy() copies without a call, and without a charge: loops that copy many say touched().
constexpr std::size_t few_bytes = 32;

// Copies bytes, which may overlap; a few of them without a call.
[[gnu::always_inline]] inline void copy(void* target, const void* source, std::size_t bytes) {
  auto* const to = static_cast<std::byte*>(target);
  const auto* const from = static_cast<const std::byte*>(source);
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
  if (bytes > few_bytes)
    copy_many(to, from, bytes);
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
