// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <cstdint>

namespace macadam::engine {

// A message as its sender sends it.
enum class Protocol : std::uint8_t { eager, hybrid, send_rndv, recv_rndv };
inline constexpr std::size_t protocols = 4;

// One thing that happens to the messages of a process.
struct Step {
  enum class Kind : std::uint8_t {
    sent,     // a message was begun, by `protocol`
    crossed,  // it was to go by SEND_RNDV: an announcement came after all, it goes by RECV_RNDV
    matched,  // a message has come for a receive that was there already
    kept,     // ... for which no receive was there
    released, // the receiver has met a message that was offered to it: its sender may go on
  };
  Kind kind = Kind::sent;
  Protocol protocol = Protocol::eager;
  Rank peer = 0;
  std::uint64_t context = 0; // of the communicator
  std::int32_t tag = 0;
  std::uint64_t bytes = 0; // of the message; of `matched` and `released` 0
};

// Is told of every step of an engine as it happens, for reports. It has the clock that the engine
// has not. To the engine the short paths are closed then, so that a process without an observer
// pays nothing for it.
class Observer {
 public:
  virtual void on_step(const Step& step) noexcept = 0;

 protected:
  ~Observer() = default;
};

} // namespace macadam::engine
