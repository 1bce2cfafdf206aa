// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/transport.h"

#include <algorithm>
#include <bit>
#include <cstring>

// Rings go to the peers that send most. A receiver grants one by message; the sender changes over
// with a marker as its last message in the queue, and back with a marker as its last in the ring,
// so messages of a pair stay in order. A marker or message that finds no room is owed, and settled
// by poll().
namespace macadam::net::shm {

// Called when a peer without a ring has sent many messages through the queue.
void Transport::consider_ring(Peer& peer) {
  const auto after = static_cast<std::uint64_t>(settings_.shm_ring_after);
  if (peer.consider_at == 0 && after > 1) { // its first message
    peer.consider_at = after;
    return;
  }
  peer.consider_at = peer.heard + std::max<std::uint64_t>(after, 1);
  if (peer.rank == rank_ || peer.ring_memory != nullptr) return;

  if (rings_given_ < settings_.shm_rings) {
    if (void* memory = heap().allocate_zeroed(ring_bytes(ring_lines_)); memory != nullptr) {
      auto& control = *new (memory) RingControl;
      peer.ring_memory = static_cast<std::byte*>(memory);
      peer.channel.in = RingReader(control, ring_lines_);
      if (may_share_mailbox(peer)) make_mailbox(peer);
      peer.grant_owed = true;
      ++rings_given_;
      ++counters_.rings_granted;
      owe(peer);
    }
    return;
  }
  // None is left. The one that is used least changes hands if this peer talks twice as much;
  // halving makes the counts a memory of the recent past.
  Peer* quietest = nullptr;
  peers_.for_each([&](Peer& other) {
    if (other.ring_read && !other.revoking &&
        (quietest == nullptr || other.heard < quietest->heard)) {
      quietest = &other;
    }
  });
  if (quietest != nullptr && 2 * quietest->heard < peer.heard) {
    quietest->revoking = quietest->revoke_owed = true;
    ++counters_.rings_revoked;
    owe(*quietest);
  }
  peers_.for_each([](Peer& other) { other.heard /= 2; });
  peer.consider_at = peer.heard + std::max<std::uint64_t>(after, 1);
}

// Only peers of the same job share one: a mailbox goes with the memory of the process that made it,
// and a process of another job does not wait until its peers have read its last message.
bool Transport::may_share_mailbox(const Peer& peer) const {
  return rank_ < peer.rank && peer.rank < static_cast<Rank>(processes_.job().size()) &&
         peer.mailbox_memory == nullptr;
}

// If there is no memory for it, the pair has its rings.
void Transport::make_mailbox(Peer& peer) {
  auto* const memory = static_cast<std::byte*>(heap().allocate(Mailbox::bytes));
  if (memory == nullptr) return;
  peer.mailbox_memory = Mailbox::begin(memory);
  std::memset(peer.mailbox_memory, 0, line_bytes);
}

void Transport::on_to_ring(Peer& peer) {
  peer.ring_read = true;
  rings_.push_back(&peer);
}

void Transport::on_ring_end(Peer& peer) {
  take_ring_back(peer);
  peer.consider_at = peer.heard + static_cast<std::uint64_t>(settings_.shm_ring_after);
}

void Transport::take_ring_back(Peer& peer) {
  std::erase(rings_, &peer);
  free(peer.ring_memory);
  peer.ring_memory = nullptr;
  peer.ring_read = peer.revoking = false;
  --rings_given_;
}

void Transport::on_grant(Peer& peer, const Line& line) {
  const auto grant = read_body<Grant>(line);
  reach(peer);
  const auto in_lines = [](RemoteMemory memory, std::uint64_t bytes) {
    return Extent::of_key(memory.key).holds_lines(memory.address, bytes / line_bytes);
  };
  const bool answers = grant.mailbox.key != private_key;
  const bool sound = std::has_single_bit(grant.lines) && grant.lines >= fewest_lines &&
                     in_lines(grant.ring, ring_bytes(grant.lines)) &&
                     (!answers || in_lines(grant.mailbox, Mailbox::bytes));
  if (!sound)
    fail_damaged(peer.rank, fmt::format("it gives a ring of {} lines at {:#x}, for answers {:#x}",
                                        grant.lines, grant.ring.address, grant.mailbox.address));
  auto* const ring = mapped_address(peer, grant.ring, ring_bytes(grant.lines));
  peer.channel.out = RingWriter(*reinterpret_cast<RingControl*>(ring), grant.lines);
  if (answers && !peer.channel.mailbox)
    peer.channel.mailbox = Mailbox(mapped_address(peer, grant.mailbox, Mailbox::bytes), false);
  peer.ring_state = RingState::granted;
  owe(peer);
}

void Transport::on_revoke(Peer& peer) {
  peer.ring_state = RingState::revoked;
  owe(peer);
}

// Writes the marker after which our messages to the peer take the other way; false if it finds no
// room.
bool Transport::change_ring_state(Peer& peer) {
  if (peer.ring_state == RingState::granted) {
    if (!peer.queue.write(Kind::to_ring, peer.seat, {})) return false;
    peer.ring_state = RingState::ring;
  } else if (peer.ring_state == RingState::revoked) {
    if (!peer.channel.write_to_ring(Kind::ring_end, {})) return false;
    peer.ring_state = RingState::queue;
  }
  return true;
}

void Transport::owe(Peer& peer) {
  if (settle(peer) || peer.owing) return;
  peer.owing = true;
  owing_.push_back(&peer);
  unfinished_.store(true, std::memory_order_relaxed);
}

// True if nothing more is owed to the peer.
bool Transport::settle(Peer& peer) {
  if (peer.ended) return true;
  if (peer.grant_owed) {
    std::byte* const mailbox = peer.mailbox_memory;
    const Grant grant{static_cast<std::uint32_t>(ring_lines_),
                      register_cached(peer.ring_memory, ring_bytes(ring_lines_)),
                      register_cached(mailbox, mailbox != nullptr ? Mailbox::bytes : 0)};
    peer.grant_owed = !post(reach(peer), Kind::grant, only(grant));
    // From now on: the peer does not know of the block before.
    if (!peer.grant_owed && mailbox != nullptr && !peer.channel.mailbox)
      peer.channel.mailbox = Mailbox(mailbox, true);
  }
  if (peer.revoke_owed) peer.revoke_owed = !post(reach(peer), Kind::revoke, {});
  return change_ring_state(peer) && !peer.grant_owed && !peer.revoke_owed;
}

void Transport::settle_rings() {
  std::erase_if(owing_, [&](Peer* peer) {
    peer->owing = !settle(*peer);
    return !peer->owing;
  });
}

} // namespace macadam::net::shm
