// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace macadam::prove {

class Decider;

// While it lives the thread runs the library, or, if not `is`, the test again.
class InLibrary {
 public:
  explicit InLibrary(bool is = true) : outer_(std::exchange(inside, is)) {}
  ~InLibrary() { inside = outer_; }
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;

  [[nodiscard]] static bool is() { return inside; }
  // Returns what it was, for whoever switches stacks.
  static bool set(bool is) { return std::exchange(inside, is); }

 private:
  inline static thread_local bool inside = false;
  bool outer_;
};

// Memory that the library under test asks for (operator new of this thread), which some of the
// time it does not get.
class Allocations {
 public:
  // Up to `refusals` are refused, whenever the decider says so. One lives in a thread at a time.
  Allocations(unsigned refusals, Decider& decider);
  ~Allocations();
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // From now on none is refused.
  void calm() { left_ = 0; }
  [[nodiscard]] unsigned refused() const { return refused_; }
  // For operator new.
  static bool refuses() {
    return current != nullptr && current->left_ != 0 && InLibrary::is() && current->decide();
  }

 private:
  bool decide();

  static thread_local Allocations* current;
  Decider& decider_;
  unsigned left_, refused_ = 0;
};

} // namespace macadam::prove
