// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace macadam::mem {

// Addresses [begin, end).
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Tells which memory has gone away: unmapped, or mapped anew, so that what was registered there is
// no longer what the program sees. A hook that notices it only writes it down; the registration
// cache asks before it trusts what it holds, and so never acts inside a hook.
class InvalidationSource {
 public:
  virtual ~InvalidationSource() = default;

  // The oldest range that went away and was not told yet; false if there is none, which is cheap.
  // Everything that went away before the call, in the order of this thread, must be told.
  virtual bool take(Range& gone) = 0;
  // From now on (no longer) this range is of interest.
  virtual void watch(const Range& range) = 0;
  virtual void unwatch(const Range& range) = 0;
};

} // namespace macadam::mem
