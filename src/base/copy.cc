// SPDX-License-Identifier: BSD-3-Clause
#include "base/copy.h"

#include <algorithm>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace macadam::base {

[[gnu::weak]] void copy_many(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
}

#if defined(__x86_64__)

[[gnu::weak]] void copy_past_caches(void* target, const void* source, std::size_t bytes) {
  constexpr std::size_t line = 64, width = sizeof(__m128i);
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t head = std::min(-reinterpret_cast<std::uintptr_t>(to) % line, bytes);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  for (bytes -= head; bytes >= line; bytes -= line) {
    __m128i words[line / width];
    std::memcpy(words, from, line);
    for (std::size_t i = 0; i < line / width; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, words[i]);
    to += line;
    from += line;
  }
  std::memcpy(to, from, bytes);
  _mm_sfence(); // these stores are in no order with those that tell of them
}

#else

[[gnu::weak]] void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

[[gnu::weak]] void touched(std::size_t) {}

} // namespace macadam::base
