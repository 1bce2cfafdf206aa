// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/choice.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// How a long body is written into memory that another core will read. While both cores share a
// cache, stores through it are fastest. Where they do not, each line is fetched from the other
// core's cache before it is written and again when it is read: stores past the cache, to memory,
// save both ways and are two to three times as fast.
namespace macadam::net::shm {

enum class Stores : std::uint8_t { cached, past_cache };

// Looks seldom: what was written past the cache makes others slow later.
using StoreChoice = Choice<Stores, 512>;

#if defined(__x86_64__)

// Asks for a line to be written: the one instruction that fetches it and takes it from the other
// core at once. (GCC's builtin emits it only for processors newer than the oldest it compiles for;
// those that lack it do nothing.)
inline void prefetch_to_write(const void* line) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

// Copies bytes that do not overlap, at least 64 of them.
inline void store_long(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) {
  constexpr std::size_t line = 64;
  constexpr std::size_t ahead = 8 * line;
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % line;
  std::memcpy(to, from, head);
  std::size_t done = head;
  const auto copy_lines = [&](auto&& before, auto&& store) {
    for (; done + line <= bytes; done += line) {
      const auto* const source = reinterpret_cast<const __m128i*>(from + done);
      auto* const target = reinterpret_cast<__m128i*>(to + done);
      before(to + done);
      const __m128i a = _mm_loadu_si128(source);
      const __m128i b = _mm_loadu_si128(source + 1);
      const __m128i c = _mm_loadu_si128(source + 2);
      const __m128i d = _mm_loadu_si128(source + 3);
      store(target, a);
      store(target + 1, b);
      store(target + 2, c);
      store(target + 3, d);
    }
  };
  if (stores == Stores::cached)
    copy_lines([](std::byte* place) { prefetch_to_write(place + ahead); },
               [](__m128i* place, __m128i word) { _mm_store_si128(place, word); });
  else
    copy_lines([](std::byte*) {},
               [](__m128i* place, __m128i word) { _mm_stream_si128(place, word); });
  std::memcpy(to + done, from + done, bytes - done);
  // Stores past the cache are not in order with the stamp that follows.
  if (stores == Stores::past_cache) _mm_sfence();
}

#else

inline void prefetch_to_write(const void* line) {
  __builtin_prefetch(line, 1);
}

inline void store_long(std::byte* to, const std::byte* from, std::size_t bytes, Stores) {
  std::memcpy(to, from, bytes);
}

#endif

} // namespace macadam::net::shm
