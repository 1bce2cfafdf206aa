// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace macadam::mpich {

// Handles that the program has made lately, with their numbers, so that few calls have to ask the
// library for either. One word for each, which is right or not there, so that threads need no lock.
template <class Handle>
class Known {
 public:
  // Null: not known.
  static Handle handle_of(unsigned number) {
    const std::uint64_t word = by_number_[number % places].load(std::memory_order_relaxed);
    if ((word & 0xffff) != number / places) return nullptr;
    return reinterpret_cast<Handle>(word >> 16);
  }
  // 0: not known.
  static unsigned number_of(Handle handle) {
    const unsigned number = by_handle_[place_of(handle)].load(std::memory_order_relaxed);
    return number != 0 && handle_of(number) == handle ? number : 0;
  }

  // The handle has this number as long as its object lives.
  static void add(unsigned number, Handle handle) {
    const auto address = reinterpret_cast<std::uint64_t>(handle);
    if (address >> 48 != 0) return; // no room for it
    by_number_[number % places].store(address << 16 | number / places, std::memory_order_relaxed);
    by_handle_[place_of(handle)].store(number, std::memory_order_relaxed);
  }
  // Its object may go now.
  static void forget(Handle handle) {
    const unsigned number = number_of(handle);
    if (number != 0) by_number_[number % places].store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned places = 1024; // a number of 26 bits leaves 16 beside an address
  static std::size_t place_of(Handle handle) {
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    return (address >> 4 ^ address >> 14) % places;
  }

  static inline std::array<std::atomic<std::uint64_t>, places> by_number_{};
  static inline std::array<std::atomic<unsigned>, places> by_handle_{};
};

} // namespace macadam::mpich
