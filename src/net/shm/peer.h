// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/bulk/chunks.h"
#include "net/shm/messages/pair_channel.h"
#include "net/shm/messages/shared_queue.h"
#include "net/shm/segment.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace macadam::net::shm {

// Where our messages to a peer go.
enum class RingState : std::uint8_t {
  queue,
  granted, // a ring is there; the marker that says so is not yet in the queue
  ring,
  revoked, // the ring is wanted back; the marker of its end is not yet in it
};

// A process of this job that we talk to or hear from.
struct Peer final : engine::Link {
  // Sending; `header` is null until the peer's segment is mapped.
  SegmentHeader* header = nullptr;
  const SegmentHeader* front = nullptr; // of another job: looked at before
  std::uint64_t front_key = 0;          // of its mapping
  RingState ring_state = RingState::queue;
  bool cross_copy = false;         // private memory can be copied by the kernel
  bool ended = false;              // its process: nothing goes there any more
  bool failed = false;             // ... and what it had sent has been read
  std::uint64_t last_position = 0; // ... which is up to here in the queue
  pid_t pid = -1;
  bool is_its_pid = false; // a process of this number is the peer, not a stranger
  SharedQueueWriter queue;
  std::uint32_t seat = 0;           // ours in its segment
  Mappings mappings;                // of its memory; not for the process itself
  std::uint32_t vain_streams = 0;   // that were cut, one after the other
  std::uint32_t vain_graces = 0;    // in which it did not begin to wait (stream.cc)
  std::uint32_t puts_under_way = 0; // accepted and not all moved: no message may overtake them

  // Both ways, by rings and in turn.
  PairChannel channel;
  std::byte* mailbox_memory = nullptr; // ours, if our rank is the lower one of a job's; kept

  // Long data, both ways.
  Chunks chunks; // the peer's
  WarmChunks warm;
  std::uint32_t long_one_way = 0; // chunks and long messages, written since one was read

  // Receiving.
  std::byte* ring_memory = nullptr; // the ring we gave, null: none
  bool ring_read = false;           // the peer writes into it: we poll it
  bool busy = false;                // it held a message when we looked last
  bool revoking = false;            // we want it back
  bool grant_owed = false;          // GRANT found no room yet
  bool revoke_owed = false;         // REVOKE found no room yet
  bool owing = false;               // in Transport::owing_
  std::uint64_t heard = 0;          // messages, halved now and then
  std::uint64_t consider_at = 0;    // `heard` at which the peer may get a ring
  std::uint64_t fragments_left = 0; // bytes to come of a message that has begun
};

// The peers that this process has had to do with.
class PeerTable {
 public:
  // The peer, made if it is new. Throws std::bad_alloc.
  Peer& get(Rank rank) {
    const auto at = peers_.lower_bound(rank);
    if (at != peers_.end() && at->first == rank) return *at->second;
    auto made = std::make_unique<Peer>();
    made->rank = rank;
    return *peers_.emplace_hint(at, rank, std::move(made))->second;
  }

  // Null if it is new.
  [[nodiscard]] Peer* find(Rank rank) const {
    const auto found = peers_.find(rank);
    return found != peers_.end() ? found->second.get() : nullptr;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [rank, peer] : peers_)
      visit(*peer);
  }
  // Visits the peers with these ranks, then removes them.
  template <class Visit>
  void take_out(Rank first, Rank count, Visit&& visit) {
    const auto begin = peers_.lower_bound(first), end = peers_.lower_bound(first + count);
    for (auto at = begin; at != end; ++at)
      visit(*at->second);
    peers_.erase(begin, end);
  }

 private:
  std::map<Rank, std::unique_ptr<Peer>> peers_; // what is done in its order is the same each time
};

} // namespace macadam::net::shm
