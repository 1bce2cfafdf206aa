// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace macadam::coll {

class Collective;

// Gives the collectives of one communicator their tags, in the order in which they are called.
// Blocking, nonblocking and persistent ones are counted each among themselves: MPI asks for one
// order of them all on all ranks, but programs exist that differ where one sort meets another.
//
// Tags are few, so that the ordinals of section 4.1 (engine/peer.h) stay few: a collective waits
// until the earlier one with its tag is complete here. Blocking ones share a tag, as each begins
// when the one before is complete. Persistent ones have tags of their own, of which nothing is kept
// when they are gone.
class Sequence {
 public:
  // Start `collective` when its tag is free: mostly now.
  void start_blocking(Collective& collective) noexcept;
  void start_nonblocking(Collective& collective) noexcept {
    start(collective, 1 + started_++ % (tags - 1));
  }
  // Gives a persistent collective a tag, its own for as long as the communicator lives, since
  // processes may start and free persistent collectives in different orders. MPI orders their
  // inits. It is known here until forget().
  void keep(Collective& collective);
  void forget(const Collective& collective) { std::erase(persistent_, &collective); }
  // The number of a collective that is called now, from 1: of all sorts together.
  [[nodiscard]] std::uint32_t count(const char* function) {
    last_called_ = function;
    return ++called_;
  }
  [[nodiscard]] std::uint32_t called() const { return called_; }
  [[nodiscard]] const char* last_called() const { return last_called_; }
  // visit(collective, whether it is persistent): the latest one with each tag that is not complete,
  // blocking ones first.
  template <class Visit>
  void for_each_running(Visit&& visit) const {
    for (const Collective* collective : last_)
      if (collective != nullptr) visit(*collective, false);
    for (const Collective* collective : persistent_)
      if (is_running(*collective)) visit(*collective, true);
  }

  // Tags from here on are those of persistent ones.
  static constexpr std::uint32_t tags = 9;

 private:
  friend class Collective;
  // Blocking collectives of a communicator after which connections pay: to connect takes some
  // hundred microseconds, and a direct barrier saves one to ten.
  static constexpr std::uint32_t many = 128;

  void start(Collective& collective, std::uint32_t tag) noexcept;
  static bool is_running(const Collective& collective);

  const char* last_called_ = "";
  std::uint32_t called_ = 0;
  std::uint32_t started_ = 0;  // nonblocking ones
  std::uint32_t blocking_ = 0; // up to `many`
  std::int32_t next_own_ = tags;
  std::array<Collective*, tags> last_ = {}; // the latest with this tag, if not complete
  std::vector<const Collective*> persistent_;
};

} // namespace macadam::coll
