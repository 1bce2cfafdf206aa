// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace macadam::prove {

class Decider;

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
    return current != nullptr && current->left_ != 0 && current->inside_ && current->decide();
  }

 private:
  friend class InLibrary;
  bool decide();

  static thread_local Allocations* current;
  Decider& decider_;
  unsigned left_, refused_ = 0;
  bool inside_ = false; // the library runs, not the test
};

// While it lives the thread runs the library, or, if not `is`, the test again.
class InLibrary {
 public:
  explicit InLibrary(bool is = true) {
    if (Allocations::current != nullptr) outer_ = std::exchange(Allocations::current->inside_, is);
  }
  ~InLibrary() {
    if (Allocations::current != nullptr) Allocations::current->inside_ = outer_;
  }
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;

 private:
  bool outer_ = false;
};

} // namespace macadam::prove
