// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <cstdint>
#include <limits>

namespace macadam::engine {

// A message as its sender sends it.
enum class Protocol : std::uint8_t { eager, hybrid, send_rndv, recv_rndv };
inline constexpr std::size_t protocols = 4;

// One thing that happens to the messages of a process.
struct Step {
  enum class Kind : std::uint8_t {
    sent,         // a message was begun, by `protocol`: its data leave, or its RTS
    crossed,      // it was to go by SEND_RNDV, and goes by RECV_RNDV as an announcement came after
                  // all, or by HYBRID as its process waits
    matched,      // a message (or its RTS) has come for a receive that was there already
    kept,         // ... for which no receive was there
    taken,        // a receive has found such a message
    released,     // the receiver has met a message that was offered to it: its sender may go on
    announced,    // a receive has announced itself to its sender (RTR)
    announcement, // such a one has come from a receiver
    data,         // the data of a rendezvous begin to move, by a put or a get of this process
    fin_sent,     // the peer is told that they have moved
    fin_arrived,  // this process is told so
    finished,     // a send or receive by rendezvous is complete
    connecting,   // the first message to or from a peer
    connected,
    failed, // nothing goes to that peer any more
  };
  static constexpr std::size_t kinds = 15;
  static constexpr std::uint64_t uncounted = std::numeric_limits<std::uint64_t>::max();

  Kind kind = Kind::sent;
  Protocol protocol = Protocol::eager; // of `sent`, `crossed`, `matched`, `kept` and `taken`
  Rank peer = 0;
  std::uint64_t context = 0; // of the communicator
  std::int32_t tag = 0;
  std::uint64_t bytes = 0; // of the message, where they are known; of `announced` of its receive
  // Which message of its channel it is, the same at both ends: of `sent`, `matched` and `taken`,
  // and of announcements.
  std::uint64_t ordinal = uncounted;
  std::uint64_t operation = 0; // tells apart the sends and receives that are under way; 0: unknown
};

// Is told of every step of an engine as it happens, for reports. It has the clock that the engine
// has not. To the engine the short paths are closed then, unless it is told otherwise
// (Engine::observe_short), so that a process without an observer pays nothing for it.
class Observer {
 public:
  virtual void on_step(const Step& step) noexcept = 0;

 protected:
  ~Observer() = default;
};

} // namespace macadam::engine
