// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/wire.h"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

// Slots of a ring whose owner looks at memory: a message ends where its slot ends, with a
// wire::Trailer behind it, all in one write. So one place is looked at, and what it says is true
// once it says so, if the network places the last byte last. `end` is the end of the slot.
namespace macadam::net::rdma::slots {

static_assert(std::endian::native == std::endian::little); // `full` is in the trailer's last byte
inline constexpr std::uint8_t full_bit = 0x80;

// What stands at the end of a slot that is full.
inline std::optional<wire::Trailer> look(std::byte* end) {
  const std::atomic_ref<std::uint8_t> last(reinterpret_cast<std::uint8_t&>(end[-1]));
  if ((last.load(std::memory_order_acquire) & full_bit) == 0) [[likely]]
    return std::nullopt;
  wire::Trailer trailer;
  std::memcpy(&trailer, end - sizeof trailer, sizeof trailer);
  return trailer;
}

// Where its message of so many bytes begins.
inline std::byte* message(std::byte* end, std::size_t bytes) {
  return end - wire::tail_bytes(bytes) - bytes;
}

// It was read, and may be written again.
inline void empty(std::byte* end) {
  end[-1] = {};
}

} // namespace macadam::net::rdma::slots
