// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace macadam::mem {

// Library memory for message data: what came before its receive, and packed copies. Buffers come in
// powers of two up to `largest_class` and are kept for reuse when they are given back, up to a
// bound; longer ones go straight to and from the system. Not thread safe.
class Buffers {
 public:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t largest_class = std::size_t{1} << 20;

  // At most `cache_bytes` of free buffers are kept.
  explicit Buffers(std::size_t cache_bytes = std::size_t{8} << 20) : cache_limit_(cache_bytes) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  // Buffers that were taken must have been given back.
  ~Buffers();

  // At least `bytes` bytes (0 is allowed), aligned to `alignment`; the caller's until give().
  // Throws MPI_ERR_NO_MEM.
  std::byte* take(std::size_t bytes);
  // The same; null if there is no memory.
  std::byte* try_take(std::size_t bytes) noexcept;
  // Gives back what take(bytes) returned, with the same `bytes`. Null is allowed.
  void give(std::byte* buffer, std::size_t bytes) noexcept;

  // From now on all buffers of more than `largest_class` bytes are `memory` (the caller's,
  // aligned), as far as it is long enough: for simulations of more ranks than the machine has
  // memory for, whose data nobody reads. They count as if they were held.
  void alias_long(std::span<std::byte> memory) { alias_ = memory; }

  // Bytes held from the system: taken and cached.
  [[nodiscard]] std::size_t bytes() const { return held_; }
  [[nodiscard]] std::size_t cached_bytes() const { return cached_; }

 private:
  // A free buffer holds the link to the next one of its class.
  struct Free {
    Free* next;
  };
  static constexpr unsigned classes = 15; // 64 bytes to 1 MiB

  std::byte* allocate(std::size_t bytes) noexcept;
  void release(std::byte* buffer, std::size_t size) noexcept;

  std::array<Free*, classes> free_ = {};
  std::size_t cache_limit_;
  std::size_t held_ = 0;
  std::size_t cached_ = 0;
  std::span<std::byte> alias_;
};

} // namespace macadam::mem
