// SPDX-License-Identifier: BSD-3-Clause
// Processes of other jobs that this one talks to no more. The two part without a word more: each
// leaves its seat in the other's segment as the last that it does there, and keeps what the other
// may write to until that one has left its own.
#include "net/shm/transport.h"

#include <algorithm>
#include <utility>

namespace macadam::net::shm {

bool Transport::forget(Rank first, Rank processes) {
  bool busy = false;
  const auto look = [&](const auto& work) { busy = busy || work.peer->rank - first < processes; };
  for (const Stream& stream : streams_)
    look(stream);
  for (const PendingGet& get : gets_)
    look(get);
  if (busy) return false;
  const std::uint32_t job = processes_.name(first).job;
  const std::span<const Seat> seats = seats_here();
  seated_.resize(std::max(seated_.size(), seats.size()));
  for (std::uint32_t place = 0; place < seats.size(); ++place)
    if (const auto name = seats[place].name();
        name && name->job == job && seated_[place] != &nobody_)
      part_from_seat(place, first + name->rank);
  peers_.take_out(first, processes, [this](Peer& peer) { part_from(peer); });
  for (std::atomic<std::uint32_t>& known : segment_.front().header().jobs)
    if (known.load() == job + 1) known.store(0);
  return true;
}

// The seat is a process's here. It may have sent nothing that this process has read.
void Transport::part_from_seat(std::uint32_t place, Rank process) {
  Parted& parted = parted_.emplace_back(Parted{place, nullptr, {}});
  seated_[place] = &nobody_;
  Peer* const peer = peers_.find(process);
  if (peer != nullptr && peer->ring_memory != nullptr) {
    parted.ring_memory = std::exchange(peer->ring_memory, nullptr);
    --rings_given_;
  }
  // An ended process leaves no seat.
  if (has_ended(processes_.life(process))) parted.last_position = queue_.taken();
}

void Transport::part_from(Peer& peer) {
  for (auto* const list : {&rings_, &owing_, &awaited_, &ended_})
    std::erase(*list, &peer);
  take_chunks_back(peer);
  if (peer.header != nullptr) seat_at(peer).leave();
  keep_front(peer);
}

// Jobs that have met tend to meet again: what is mapped of a few stays, and their pages with it.
void Transport::keep_front(Peer& peer) {
  constexpr std::size_t most_kept = 16;
  if (peer.front == nullptr || processes_.life(peer.rank) != Life::running) return;
  std::optional<Mapping> front = peer.mappings.take(peer.front_key);
  if (!front) return;
  if (kept_fronts_.size() == most_kept) kept_fronts_.erase(kept_fronts_.begin());
  kept_fronts_.push_back(
      {processes_.secret(peer.rank), processes_.name(peer.rank).rank, std::move(*front)});
}

std::optional<Mapping> Transport::take_kept_front(Rank process) {
  const boot::Secret secret = processes_.secret(process);
  const std::uint32_t rank = processes_.name(process).rank;
  const auto found = std::ranges::find_if(kept_fronts_, [&](const KeptFront& each) {
    return each.secret == secret && each.rank == rank;
  });
  if (found == kept_fronts_.end()) return std::nullopt;
  std::optional<Mapping> front(std::move(found->mapping));
  kept_fronts_.erase(found);
  const SegmentHeader& header = front->header();
  if (header.magic != SegmentHeader::magic_value || header.front_bytes != front->extent().bytes)
    return std::nullopt; // another life's by now
  return front;
}

// Those that their processes have left are for others, once all is read that was written from
// there.
void Transport::clear_seats() {
  std::erase_if(parted_, [this](Parted& gone) {
    SegmentHeader& header = segment_.front().header();
    Seat& seat = seats_in(segment_.front().base(), header.seats)[gone.seat];
    if (!gone.last_position && seat.was_left()) gone.last_position = queue_.taken();
    if (!gone.last_position || queue_.position() < *gone.last_position) return false;
    free_chunks_of(gone.seat);
    free(gone.ring_memory);
    seated_[gone.seat] = nullptr;
    seat.give_to_others();
    return true;
  });
}

void Transport::free_chunks_of(std::uint32_t seat) {
  for (std::uint32_t chunk = 0; chunk < chunks_.count(); ++chunk)
    if (chunks_.holder(chunk) == seat) chunks_.free(chunk);
}

} // namespace macadam::net::shm
