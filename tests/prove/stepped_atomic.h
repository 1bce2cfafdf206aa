// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/machine.h"

#include <atomic>
#include <cstdint>

// Stand in for std::atomic and std::atomic_ref in headers that are included after
//
//   #define atomic_ref stepped_atomic_ref
//   #define atomic stepped_atomic
//
// Each step gives the turn away (machine.h). In std, as the headers name them with it.
namespace std {

template <class T>
class stepped_atomic_ref {
 public:
  explicit stepped_atomic_ref(T& value) : value_(value) {}
  T load(memory_order) const {
    const T value = value_;
    macadam::prove::Machine::now->step(static_cast<uint64_t>(value));
    return value;
  }
  void store(T value, memory_order) const {
    value_ = value;
    macadam::prove::Machine::now->changed();
    macadam::prove::Machine::now->step(0);
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order) const {
    const bool same = value_ == expected;
    if (same) {
      value_ = desired;
      macadam::prove::Machine::now->changed();
    } else {
      expected = value_;
    }
    macadam::prove::Machine::now->step(static_cast<uint64_t>(expected) * 2 + (same ? 1 : 0));
    return same;
  }

 private:
  T& value_;
};

template <class T>
class stepped_atomic {
 public:
  stepped_atomic() = default;
  stepped_atomic(T value) : value_(value) {}
  T load(memory_order order) const { return stepped_atomic_ref<T>(value_).load(order); }
  void store(T value, memory_order order) { stepped_atomic_ref<T>(value_).store(value, order); }
  bool compare_exchange_weak(T& expected, T desired, memory_order order) {
    return compare_exchange_strong(expected, desired, order);
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order order) {
    return stepped_atomic_ref<T>(value_).compare_exchange_strong(expected, desired, order);
  }

 private:
  mutable T value_{};
};

} // namespace std
