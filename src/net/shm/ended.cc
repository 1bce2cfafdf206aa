// SPDX-License-Identifier: BSD-3-Clause
// Processes that end before their time: how they are found, and when the layers above hear of them.
#include "net/shm/transport.h"

#include "base/error.h"
#include "base/try_push.h"

#include <algorithm>

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
    if (has_ended(processes_.life(peer.rank))) note_end(peer);
  });
  const std::span<const Seat> seats = seats_here();
  queue_.leave_out_abandoned(seats, [&](std::size_t i) {
    const std::optional<Rank> process = process_in(seats[i]);
    if (!process) return true;
    return !has_ended(processes_.life(*process)) && !peers_.get(*process).ended;
  });
}

// What the peer has sent is read before anybody hears of its end: a message counts although its
// sender is gone, and a fragment of a put must not be read when its memory, or its chunk, is
// somebody else's.
void Transport::note_end(Peer& peer) noexcept {
  if (peer.ended) return;
  peer.ended = true;
  peer.last_position = queue_.taken();
  for (Seat& seat : seats_here())
    if (is_of(seat, peer)) seat.bar();
  if (!base::try_push(ended_, &peer))
    breakdown_.note(base::make_error(MPI_ERR_NO_MEM,
                                     "there is no memory to note that rank {} has "
                                     "ended",
                                     peer.rank));
  unfinished_.store(true, std::memory_order_relaxed);
}

bool Transport::has_left(engine::Link& link) noexcept {
  return processes_.life(static_cast<Peer&>(link).rank) == Life::over;
}

// Whether the process in a seat still accesses this one's memory. Who has ended does not, but says
// so for ever.
bool Transport::is_accessing(const Seat& seat) const noexcept {
  const std::optional<Rank> process = seat.accesses() ? process_in(seat) : std::nullopt;
  if (!process) return false;
  const Peer* const peer = peers_.find(*process);
  if (peer != nullptr && peer->is_its_pid) return !system_.has_ended(peer->pid);
  const Life life = processes_.life(*process);
  return life == Life::running || life == Life::unknown;
}

// Returns when no other process accesses this one's memory any more.
void Transport::close_memory() noexcept {
  constexpr unsigned between_looks_us = 10;
  std::atomic<std::uint32_t>& closed = segment_.front().header().closed;
  closed.store(1, std::memory_order_seq_cst);
  for (const Seat& seat : seats_here())
    while (is_accessing(seat))
      system_.sleep(closed, 1, between_looks_us);
}

// Fails the ended peers of which nothing is left to be read, and nothing to be written by.
void Transport::fail_ended() {
  const auto is_accessing_here = [this](const Peer& peer) {
    return std::ranges::any_of(
        seats_here(), [&](const Seat& seat) { return is_of(seat, peer) && is_accessing(seat); });
  };
  for (Peer* const peer : ended_) {
    const bool all_read = queue_.position() >= peer->last_position &&
                          (!peer->ring_read || peer->channel.next() == nullptr);
    if (!all_read || peer->failed || is_accessing_here(*peer)) continue;
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
