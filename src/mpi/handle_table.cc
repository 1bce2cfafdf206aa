// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/handle_table.h"

namespace macadam::mpi {

int HandleTable::to_int(const void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value < first_number) return static_cast<int>(value);
  if (const auto row = numbers_.find(handle); row != numbers_.end()) return row->second;
  const int number = new_number();
  numbers_.emplace(handle, number);
  handles_[static_cast<std::size_t>(number - first_number)] = const_cast<void*>(handle);
  return number;
}

int HandleTable::new_number() {
  if (free_.size() < least_free) {
    handles_.push_back(nullptr);
    return first_number + static_cast<int>(handles_.size() - 1);
  }
  const int number = free_.front();
  free_.pop_front();
  return number;
}

void HandleTable::forget_number(const void* handle) {
  const auto row = numbers_.find(handle);
  if (row == numbers_.end()) return;
  handles_[static_cast<std::size_t>(row->second - first_number)] = nullptr;
  free_.push_back(row->second);
  numbers_.erase(row);
}

} // namespace macadam::mpi
