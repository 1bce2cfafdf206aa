// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace macadam::mpi {

// The integers that stand for handles in Fortran (MPI_Comm_toint and its like). A predefined handle
// is its own constant. Any other gets a number at its first conversion, and keeps it until the
// object is freed. The number is given again only after many others, so that an integer kept too
// long is refused rather than taken for another object. Requests and messages are too short-lived
// to pay for that: the next one in the same memory has the same number.
class HandleTable {
 public:
  int to_int(const void* handle);
  // Null if the integer was never given or its object is gone.
  [[nodiscard]] void* from_int(int number) const {
    if (number < first_number)
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number < 0 ? 0 : number));
    const auto row = static_cast<std::size_t>(number - first_number);
    return row < handles_.size() ? handles_[row] : nullptr;
  }
  // The object is gone: its number means nothing any more.
  void forget(const void* handle) {
    if (!numbers_.empty()) [[unlikely]]
      forget_number(handle);
  }

 private:
  static constexpr int first_number = 0x1000;     // above all predefined handles
  static constexpr std::size_t least_free = 1024; // before one is given again
  int new_number();
  void forget_number(const void* handle);

  std::unordered_map<const void*, int> numbers_;
  std::vector<void*> handles_; // from first_number on
  std::deque<int> free_;       // numbers whose objects are gone, the oldest first
};

} // namespace macadam::mpi
