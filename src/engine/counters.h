// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace macadam::engine {

// Counted always (design: "A user can see what happened").
struct EngineCounters {
  std::uint64_t eager_sent = 0;
  std::uint64_t hybrid_sent = 0;
  std::uint64_t send_rndv_read = 0;
  std::uint64_t send_rndv_write = 0;
  std::uint64_t recv_rndv = 0;
  std::uint64_t last_byte = 0; // writes seen by their last byte, without a FIN
  std::uint64_t notified = 0;  // writes that the put itself announced as complete, without a FIN
  std::uint64_t bytes_sent = 0;
  std::uint64_t sender_early = 0;   // rendezvous-sized messages whose SENDER_READY came first
  std::uint64_t receiver_early = 0; // ... whose announcement was there when the send began
  std::uint64_t both = 0;           // ... whose announcement and SENDER_READY crossed
  std::uint64_t unregistered = 0;   // memory that the network could not register
  std::uint64_t pulled = 0;         // messages received in fragments therefore
  std::uint64_t announcements = 0;
  std::uint64_t announcements_dropped = 0;
  std::uint64_t retractions = 0;
  std::uint64_t uncounted = 0; // looks for a channel that there was no room for
  std::uint64_t unexpected = 0;
  std::uint64_t unexpected_bytes_most = 0;
  std::uint64_t throttles = 0;
  std::uint64_t backlogged = 0;
  std::uint64_t bundled = 0;
  std::uint64_t peers = 0;
  std::uint64_t partitions_sent = 0;
  std::uint64_t partitions_received = 0;
  std::uint64_t partitions_read = 0;
  std::uint64_t partitions_ahead = 0;
};

} // namespace macadam::engine
