// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace macadam::mpich {

// A handle whose object may go in the call that this thread is in: while its callbacks still speak
// of it, nothing is noted of it any more.
class Dying {
 public:
  Dying() = default;
  Dying(const Dying&) = delete;
  Dying& operator=(const Dying&) = delete;
  ~Dying() {
    if (handle_ != nullptr) innermost_ = outer_;
  }
  void begin(const void* handle) {
    handle_ = handle;
    outer_ = innermost_;
    innermost_ = this;
  }
  static bool is(const void* handle) {
    const Dying* one = innermost_;
    while (one != nullptr && one->handle_ != handle)
      one = one->outer_;
    return one != nullptr;
  }

 private:
  const void* handle_ = nullptr;
  const Dying* outer_ = nullptr;
  static inline thread_local constinit const Dying* innermost_ = nullptr;
};

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
    if (address >> 48 != 0 || Dying::is(handle)) return; // no room for it, or not for long
    by_number_[number % places].store(address << 16 | number / places, std::memory_order_relaxed);
    by_handle_[place_of(handle)].store(number, std::memory_order_relaxed);
  }
  static void forget(unsigned number) {
    if (handle_of(number) != nullptr)
      by_number_[number % places].store(0, std::memory_order_relaxed);
  }
  // All objects are gone, or may be.
  static void forget_all() {
    for (auto& word : by_number_)
      if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
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
