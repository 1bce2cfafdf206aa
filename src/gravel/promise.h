// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "gravel/wire.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace macadam::gravel {

struct Peer;
struct Request;

// Receive buffers that the program has promised to post. Up to Limits::cheap_copy they
// have a ring of places in the library's memory, of which the producer is told before the program
// posts anything: the data of the n-th buffer come into the next place, and are copied from there
// when both have come, data and memory; or, as a message, straight to memory that is there already.
// Each place is bound to the next buffer that is posted, and announced again, half a ring at once,
// when it is free. A buffer that finds no announced place is announced by itself, so a producer
// never waits for one that was posted.
struct Promise : base::ListNode<> {
  enum class State : std::uint8_t { free, announced, filled, failed, over };
  struct Place {
    State state = State::free;
    Request* posted = nullptr; // until its data have come
  };

  Peer* peer = nullptr;
  std::int32_t tag = 0;
  std::size_t bytes = 0;
  std::uint64_t unposted = 0;    // buffers, by the program
  std::uint64_t unannounced = 0; // and to the producer
  std::byte* memory = nullptr;   // of the ring, if there is one
  RemoteMemory remote;
  std::uint32_t name = 0; // of the first place
  std::vector<Place> places;
  // Places, ever; what is over behind one that is not is not free yet.
  std::uint64_t announced = 0, bound = 0, freed = 0;

  [[nodiscard]] Place& place(std::uint64_t position) { return places[position % places.size()]; }
  [[nodiscard]] std::byte* memory_of(const Place& place) const {
    return memory + static_cast<std::size_t>(&place - places.data()) * bytes;
  }
  // An announced place waits for the next buffer.
  [[nodiscard]] bool has_place() const { return bound != announced; }
};

} // namespace macadam::gravel
