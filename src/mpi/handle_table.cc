// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/handle_table.h"

namespace macadam::mpi {

int HandleTable::to_int(const void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value < first_number) return static_cast<int>(value);
  const auto [row, added] = numbers_.try_emplace(handle, next_);
  if (added) handles_[next_++] = const_cast<void*>(handle);
  return row->second;
}

void* HandleTable::from_int(int number) const {
  if (number < static_cast<int>(first_number)) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number < 0 ? 0 : number));
  }
  const auto row = handles_.find(number);
  return row == handles_.end() ? nullptr : row->second;
}

void HandleTable::forget_number(const void* handle) {
  const auto row = numbers_.find(handle);
  if (row == numbers_.end()) return;
  handles_.erase(row->second);
  numbers_.erase(row);
}

} // namespace macadam::mpi
