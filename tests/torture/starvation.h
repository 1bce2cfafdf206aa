// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/allocation.h"

#include <cstdint>

// Memory that the library asks for on the way of messages and, once in a run, does not get. In the
// copies of the layers that such tests link `operator new` is called starved_new()
// (CMakeLists.txt), so what the simulator asks for inside their calls is not counted.
namespace macadam::torture {

class Starvation {
 public:
  // What is asked for from now on is counted, and the n-th refused, from 1; 0: none.
  static void begin(std::uint64_t refused);
  // What is asked for is neither counted nor refused any more.
  static void end() { on_ = false; }
  [[nodiscard]] static std::uint64_t asked() { return asked_; }

  // For operator new.
  static bool refuses() { return on_ && prove::InLibrary::is() && ++asked_ == refused_; }

 private:
  inline static bool on_ = false;
  inline static std::uint64_t asked_ = 0, refused_ = 0;
};

} // namespace macadam::torture
