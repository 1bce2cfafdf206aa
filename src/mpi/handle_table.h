// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>

namespace macadam::mpi {

// The integers that stand for handles in Fortran (MPI_Comm_toint and its like). A predefined handle
// is its own constant. Any other gets a number at its first conversion, and keeps it until the
// object is freed.
class HandleTable {
 public:
  int to_int(const void* handle);
  // Null if the integer was never given or its object is gone.
  [[nodiscard]] void* from_int(int number) const;
  // The object is gone: its number means nothing any more.
  void forget(const void* handle) {
    if (!numbers_.empty()) [[unlikely]]
      forget_number(handle);
  }

 private:
  static constexpr std::uintptr_t first_number = 0x1000; // above all predefined handles
  void forget_number(const void* handle);

  int next_ = first_number;
  std::unordered_map<const void*, int> numbers_;
  std::unordered_map<int, void*> handles_;
};

} // namespace macadam::mpi
