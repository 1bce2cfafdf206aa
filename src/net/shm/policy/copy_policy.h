// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/policy/selector.h"
#include "net/shm/system.h"

#include <array>
#include <cstddef>

namespace macadam::net::shm {

// How long data of one peer shall come. That is for their receiver to say: it sees how long they
// take from the sender's first store to its own last, of which either core may have the longer
// part, and how long until the next have come.
class CopyPolicy {
 public:
  struct Next {
    CopyMethod method;
    bool timed; // the sender says when it began
  };
  // Data have come. `began` is when, 0 if they were not timed. Returns how the next of this size
  // shall; the clock is looked at only if one of the two is timed.
  Next came(std::size_t bytes, CopyMethod method, double began, System& system);

 private:
  MethodSelector selector_;
  std::array<CopyCost, size_classes> costs_;
};

} // namespace macadam::net::shm
