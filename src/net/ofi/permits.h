// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <array>
#include <cstdint>

namespace macadam::net::ofi {

// The permits of one pair of processes, both ways. A permit lies with the peer that may use it,
// which answers by itself whether it has, when the issuer wants it back: its progress thread does
// while its program computes. A permit is a number and, below it, a place in these tables.
struct Permits {
  static constexpr unsigned most = 16; // open at a time, each way

  // Ours, for the peer.
  std::uint64_t last = 0;                       // number given
  std::uint32_t open = 0;                       // a bit for each place
  std::uint32_t asked = 0;                      // ... of which the peer was asked
  std::array<engine::Revoked, most> found = {}; // once it has answered
  std::array<std::uint64_t, most> numbers = {};
  // The peer's, for us.
  std::array<std::uint64_t, most> used = {};    // the last number
  std::array<std::uint64_t, most> revoked = {}; // the highest number

  // 0: too many are open.
  std::uint64_t issue() {
    for (unsigned at = 0; at < most; ++at) {
      const std::uint32_t bit = 1u << at;
      const bool being_asked = (asked & bit) != 0 && found[at] == engine::Revoked::unknown;
      if ((open & bit) != 0 || being_asked) continue;
      open |= bit;
      asked &= ~bit;
      numbers[at] = ++last;
      return last * most + at;
    }
    return 0;
  }
  void discard(std::uint64_t permit) { open &= ~(1u << place(permit)); }
  // The peer has answered.
  void answered(std::uint64_t permit, bool was_used) {
    if (numbers[place(permit)] == number(permit))
      found[place(permit)] = was_used ? engine::Revoked::no : engine::Revoked::yes;
  }

  // Of the peer's: false if it was revoked.
  bool use(std::uint64_t permit) {
    if (revoked[place(permit)] >= number(permit)) return false;
    used[place(permit)] = number(permit);
    return true;
  }
  // Whether it had been used.
  bool revoke(std::uint64_t permit) {
    std::uint64_t& highest = revoked[place(permit)];
    if (highest < number(permit)) highest = number(permit);
    return used[place(permit)] == number(permit);
  }

  static unsigned place(std::uint64_t permit) { return static_cast<unsigned>(permit % most); }
  static std::uint64_t number(std::uint64_t permit) { return permit / most; }
};

} // namespace macadam::net::ofi
