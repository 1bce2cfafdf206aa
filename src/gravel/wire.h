// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <array>
#include <cstddef>
#include <cstdint>

// What processes write into each other's ledgers. Little-endian, fixed sizes.
namespace macadam::gravel {

using engine::Rank;
using engine::RemoteMemory;

// The rings that a process keeps for each peer, and into which that peer writes (Danalis et al.,
// section 2.1).
enum class Ledger : std::uint8_t {
  receive_info, // here is memory to put to
  send_info,    // data are there, or will be
  fin,          // an exchange is over
};
inline constexpr std::size_t ledger_count = 3;

enum class EntryKind : std::uint16_t {
  receive_buffer = 1, // receive_info: put to `memory`, once or as often as `uses` says
  send_buffer,        // send_info: get from `memory`
  send_request,       // send_info: post a receive buffer; no memory yet
  fin,
};

// How many entries of each ledger a process has taken out, since the start: their writer
// has room again. Wraps around.
using Consumed = std::array<std::uint32_t, ledger_count>;

struct Entry {
  RemoteMemory memory;
  std::uint64_t bytes = 0;
  std::uint64_t request = 0; // of the one whose `memory` it is
  std::int32_t tag = 0;
  EntryKind kind = EntryKind::fin;
  std::uint16_t failed = 0; // FIN: not all data are there
  Consumed consumed = {};   // of the ledgers that the reader of this entry writes
  // receive_buffer, promised: so many buffers of `bytes` each, one after the other in a ring of
  // `places` at `memory`, from `place` on; `request` is the name of the ring's first place. FIN: 1,
  // for one of them, and `request` is the name of its place.
  std::uint32_t uses = 0;
  std::uint32_t place = 0;
  std::uint32_t places = 0;
};
static_assert(sizeof(Entry) == 64);

// One place of a ledger, or, the first of each peer, where that peer tells `consumed` when it has
// no entry to tell it with.
union alignas(64) Slot {
  Entry entry;
  Consumed consumed;
  Slot() {} // not initialised: memory that nobody writes to is not touched
};
static_assert(sizeof(Slot) == sizeof(Entry));

// What lies where in the memory that a process keeps for its peers.
struct Layout {
  std::uint32_t slots; // of a ledger, a power of two

  [[nodiscard]] std::size_t slots_per_peer() const { return 1 + ledger_count * slots; }
  [[nodiscard]] std::size_t credits(Rank peer) const { return peer * slots_per_peer(); }
  [[nodiscard]] std::size_t slot(Rank peer, Ledger ledger, std::uint32_t position) const {
    return credits(peer) + 1 + static_cast<std::size_t>(ledger) * slots + (position & (slots - 1));
  }
};

// The notification of a put into a ledger says which: 1 + Ledger. This one: only credits.
inline constexpr std::uint32_t credit_notification = 1 + ledger_count;

// The notification of the put that fills a receive buffer: this bit and the short id of its
// request; or for a promised one, whose name is shorter, this and the name of its place. It ends
// the exchange as a FIN does.
inline constexpr std::uint32_t filled_bit = 1u << (engine::notification_bits - 1);
inline constexpr std::uint32_t filled_place = credit_notification + 1;
inline constexpr std::uint32_t most_places = filled_bit - filled_place;

// What stands before the data of a whole promised buffer that travel as a message.
struct Filling {
  std::uint32_t place; // its name
};

} // namespace macadam::gravel
