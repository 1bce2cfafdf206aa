// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/messages/mailbox.h"
#include "net/shm/messages/ring.h"

#include <cstdint>

namespace macadam::net::shm {

// What two processes say to each other outside of their queues, in order: by a ring each way, and
// answers by the block that both write in turn. One process's end.
struct PairChannel {
  RingWriter out;
  RingReader in;
  Mailbox mailbox;

  enum class Written : std::uint8_t { nothing, to_ring, to_mailbox };

  // Writes a message; it went nowhere if there is no room now.
  Written write(Kind kind, const MessageBody& body) {
    if (mailbox.is_for_answer()) {
      mailbox.write(kind, body, out.position(), in.position());
      wrote_last_ = true;
      return Written::to_mailbox;
    }
    return write_to_ring(kind, body) ? Written::to_ring : Written::nothing;
  }
  bool write_to_ring(Kind kind, const MessageBody& body) {
    if (!out.write(kind, mailbox.mark(in.position()), body, wrote_last_)) [[unlikely]]
      return false;
    wrote_last_ = true;
    return true;
  }

  // The next message, null if there is none; it stays valid until pop(), and until then what is
  // written goes by the ring.
  [[nodiscard]] const Line* next() {
    const Line* line = in.next();
    came_by_mailbox_ = line == nullptr || mailbox.precedes(*line);
    if (came_by_mailbox_) line = mailbox.next(in.position());
    if (line != nullptr) mailbox.note(*line, out.position());
    return line;
  }
  // See CircularBuffer. A short message needs not be looked at.
  [[nodiscard]] bool holds(const Line& line) const {
    return came_by_mailbox_ ? line.bytes <= longest_inline : in.holds(line);
  }
  void pop() {
    if (came_by_mailbox_)
      mailbox.pop();
    else
      in.pop();
    wrote_last_ = false;
  }

 private:
  bool wrote_last_ = false; // the peer has sent nothing since
  bool came_by_mailbox_ = false;
};

} // namespace macadam::net::shm
