// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace macadam::mem {

// Addresses [begin, end).
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool operator==(const Range&) const = default;
};

inline constexpr Range everything = {0, UINTPTR_MAX};

// Tells which memory has gone away: unmapped, or mapped anew, so that what was registered there is
// no longer what the program sees. A source only writes it down; the registration cache asks before
// it trusts what it holds, and acts then. Its user calls it from one thread at a time.
class InvalidationSource {
 public:
  virtual ~InvalidationSource() = default;

  // From now on this range, whole pages, is of interest, for good: what is told too much costs
  // little. False if it cannot be watched: what is registered there must not outlive its use.
  virtual bool watch(const Range& range) = 0;
  // The oldest range that went away and was not told yet; false if there is none, which is cheap.
  // What another thread may have been given for itself by now has gone away before this call, and
  // is told. More may be told than went away.
  virtual bool take(Range& gone) = 0;
  // Why nothing can be watched on this machine, with the remedy; empty if it can.
  [[nodiscard]] virtual std::string why_not() const { return {}; }
};

} // namespace macadam::mem
