// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>

namespace macadam::coll {

class Collective;

// Gives the collectives of one communicator their tags, in the order in which they are called,
// which is the same on all ranks. Tags are few, so that the ordinals of section 4.1 (engine/peer.h)
// stay few: a collective waits until the earlier one with its tag is complete here.
class Sequence {
 public:
  // Starts `collective` when its tag is free: mostly now.
  void start(Collective& collective) noexcept;
  // A tag for a persistent collective, its own for as long as the communicator lives, since
  // processes may start persistent collectives in different orders.
  [[nodiscard]] std::int32_t own_tag() { return next_own_++; }

 private:
  friend class Collective;
  static constexpr std::uint32_t tags = 8;

  std::uint32_t started_ = 0;
  std::int32_t next_own_ = tags;
  std::array<Collective*, tags> last_ = {}; // the latest with this tag, if not complete
};

} // namespace macadam::coll
