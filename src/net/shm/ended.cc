// SPDX-License-Identifier: BSD-3-Clause
// Processes that end before their time: how they are found, and when the layers above hear of them.
#include "net/shm/transport.h"

#include "base/error.h"
#include "base/try_push.h"

namespace macadam::net::shm {

void Transport::look_for_ended() {
  vain_polls_ = 0;
  clear_seats();
  const boot::Job& job = processes_.job();
  if (const unsigned failures = job.failures(); failures != failures_seen_) {
    failures_seen_ = failures;
    for (int i = 0; i < job.local_size(); ++i)
      if (const int rank = job.neighbour(i); job.life(rank) == Life::failed)
        note_end(peers_.get(static_cast<Rank>(rank)));
  }
  // No count tells of those of other jobs; and this one does not end with them.
  peers_.for_each([&](Peer& peer) {
    if (peer.rank < static_cast<Rank>(job.size())) return;
    const Life life = processes_.life(peer.rank);
    if (life == Life::failed || life == Life::over) note_end(peer);
  });
  const std::span<const Seat> seats = seats_here();
  queue_.leave_out_abandoned(seats, [&](std::size_t i) {
    const std::optional<Rank> process = process_in(seats[i]);
    if (!process) return true;
    const Life life = processes_.life(*process);
    return life != Life::failed && life != Life::over && !peers_.get(*process).ended;
  });
}

// Whether the peer is known to have failed, or others know it by now.
bool Transport::has_failed(Peer& peer) noexcept {
  if (peer.ended) return true;
  const boot::Job& job = processes_.job();
  const bool counted = peer.rank < static_cast<Rank>(job.size());
  if (counted && job.failures() == failures_seen_) return false;
  if (processes_.life(peer.rank) != Life::failed) return false;
  note_end(peer);
  return true;
}

// What the peer has sent is read before anybody hears of its end: a message counts although its
// sender is gone, and a fragment of a put must not be read when its memory, or its chunk, is
// somebody else's.
void Transport::note_end(Peer& peer) noexcept {
  if (peer.ended) return;
  peer.ended = true;
  peer.last_position = queue_.taken();
  if (!base::try_push(ended_, &peer))
    breakdown_.note(base::make_error(MPI_ERR_NO_MEM,
                                     "there is no memory to note that rank {} has "
                                     "ended",
                                     peer.rank));
  unfinished_.store(true, std::memory_order_relaxed);
}

// Fails the ended peers of which nothing is left to be read.
void Transport::fail_ended() {
  for (Peer* const peer : ended_) {
    const bool all_read = queue_.position() >= peer->last_position &&
                          (!peer->ring_read || peer->channel.next() == nullptr);
    if (!all_read || peer->failed) continue;
    peer->failed = true;
    take_chunks_back(*peer);
    if (peer->ring_memory != nullptr) take_ring_back(*peer);
  }
}

bool Transport::report_failed(Sink& sink) {
  bool any = false;
  for (std::size_t i = 0; i < ended_.size();) {
    const Peer& peer = *ended_[i];
    if (!peer.failed) {
      ++i;
      continue;
    }
    ended_.erase(ended_.begin() + static_cast<std::ptrdiff_t>(i));
    sink.on_peer(peer.rank, engine::PeerState::failed);
    any = true;
  }
  return any;
}

} // namespace macadam::net::shm
