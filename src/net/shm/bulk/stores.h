// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// How lines are written that another core will read.
namespace macadam::net::shm {

#if defined(__x86_64__)

// Asks for a line to be written: the one instruction that fetches it and takes it from the other
// core at once. (GCC's builtin emits it only for processors newer than the oldest it compiles for;
// those that lack it do nothing.)
inline void prefetch_to_write(const void* line) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

// Hands a line that was written on to the cache that all cores share, where the one that reads it
// next finds it sooner than here. Processors that cannot do that do nothing.
inline void cldemote(const void* line) {
  asm volatile("cldemote %0" : : "m"(*static_cast<const char*>(line)));
}

// Copies bytes. For a few lines of a circular buffer, which the other core has read last: they are
// asked for ahead.
inline void copy_ahead(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 64, ahead = 8 * line;
  const std::size_t head = std::min(-reinterpret_cast<std::uintptr_t>(to) % line, bytes);
  std::memcpy(to, from, head);
  std::size_t done = head;
  for (; done + line <= bytes; done += line) {
    prefetch_to_write(to + done + ahead);
    const auto* const source = reinterpret_cast<const __m128i*>(from + done);
    auto* const target = reinterpret_cast<__m128i*>(to + done);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_store_si128(target, a);
    _mm_store_si128(target + 1, b);
    _mm_store_si128(target + 2, c);
    _mm_store_si128(target + 3, d);
  }
  std::memcpy(to + done, from + done, bytes - done);
}

#else

inline void prefetch_to_write(const void* line) {
  __builtin_prefetch(line, 1);
}

inline void cldemote(const void*) {}

inline void copy_ahead(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

} // namespace macadam::net::shm
