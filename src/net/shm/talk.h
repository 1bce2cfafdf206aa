// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/ring.h"
#include "net/shm/turn_block.h"

#include <cstdint>

namespace macadam::net::shm {

// What two processes say to each other outside of their queues, in order: by a ring each way, and
// answers by the block that both write in turn. One process's end.
struct Talk {
  RingWriter out;
  RingReader in;
  TurnBlock turn;

  enum class Went : std::uint8_t { nowhere, by_ring, in_turn };

  // Writes a message; it went nowhere if there is no room now.
  Went write(Kind kind, const Parts& parts) {
    if (turn.is_for_answer()) {
      turn.write(kind, parts, out.position(), in.position());
      wrote_last_ = true;
      return Went::in_turn;
    }
    return write_to_ring(kind, parts) ? Went::by_ring : Went::nowhere;
  }
  bool write_to_ring(Kind kind, const Parts& parts) {
    if (!out.write(kind, turn.mark(in.position()), parts, wrote_last_)) [[unlikely]]
      return false;
    wrote_last_ = true;
    return true;
  }

  // The next message, null if there is none; it stays valid until pop(), and until then what is
  // written goes by the ring.
  [[nodiscard]] const Line* next() {
    const Line* line = in.next();
    came_in_turn_ = line == nullptr || turn.precedes(*line);
    if (came_in_turn_) line = turn.next(in.position());
    if (line != nullptr) turn.note(*line, out.position());
    return line;
  }
  // See Lane. A short message needs not be looked at.
  [[nodiscard]] bool holds(const Line& line) const {
    return came_in_turn_ ? line.bytes <= longest_inline : in.holds(line);
  }
  void pop() {
    if (came_in_turn_)
      turn.pop();
    else
      in.pop();
    wrote_last_ = false;
  }

 private:
  bool wrote_last_ = false; // the peer has sent nothing since
  bool came_in_turn_ = false;
};

} // namespace macadam::net::shm
