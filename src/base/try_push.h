// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <new>
#include <utility>
#include <vector>

namespace macadam::base {

// Appends to a vector where nothing may be thrown. False if there is no memory: nothing was done.
template <class T>
bool try_push(std::vector<T>& vector, T value) noexcept {
  try {
    vector.push_back(std::move(value));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The same, at a place of the vector.
template <class T>
bool try_insert(std::vector<T>& vector, typename std::vector<T>::const_iterator at,
                const T& value) noexcept {
  try {
    vector.insert(at, value);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

} // namespace macadam::base
