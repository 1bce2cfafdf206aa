// SPDX-License-Identifier: BSD-3-Clause
// Short nonblocking messages of a burst travel together, where a message costs the network and both
// processes much more than its bytes (Limits::bundled). The first go singly; those behind them,
// while the program begins one after the other without a pause and looks for nothing, are held in
// the backlog, not complete, and leave together when it does look.
//
// Nothing waits behind them but more of the same burst: all else for that peer has them leave
// before. No call waits without a look. So what is left is a program that begins a burst and then
// computes: how long messages were held is seen when they leave, and if it was long the next ones
// go singly.
#include "base/copy.h"
#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace macadam::engine {
namespace {

// Messages to a peer that go singly between two looks, before others may be held.
constexpr std::uint32_t most_singly = 4;
// Seconds between the end of one send and the beginning of the next, in a burst.
constexpr double longest_pause = 5e-6;
// Seconds for which messages should be held at most; how often that is looked at, in messages.
constexpr double longest_hold = 50e-6;
constexpr std::uint32_t unseen = 8;
// Messages that leave together, at most.
constexpr std::uint32_t most_bundled = 64;
// After messages were held too long so many go singly that could have been held; after each further
// time four times as many.
constexpr std::uint32_t fewest_barred = 64;
constexpr std::uint32_t most_barred = 1 << 20;

constexpr std::size_t in_bundle(std::size_t bytes) {
  return sizeof(wire::BundledBytes) + sizeof(wire::Eager) + bytes;
}

} // namespace

// Not the first such message since the last look. False: it is to be held, or finds no room.
bool Engine::send_in_burst(Peer& peer, const Envelope& envelope, const void* address,
                           std::size_t bytes) noexcept {
  Burst& burst = peer.burst;
  if (burst.barred != 0) {
    --burst.barred;
    return send_short(peer, envelope, address, bytes);
  }
  const Transport& network = *peer.transport;
  if (burst.count >= most_singly && network.now() - burst.since < longest_pause) {
    hold(peer);
    return false;
  }
  if (!send_short(peer, envelope, address, bytes)) return false;
  if (++burst.count >= most_singly) burst.since = network.now();
  return true;
}

// What comes next for this peer, which has no backlog, may be held.
void Engine::hold(Peer& peer) noexcept {
  peer.holds = true;
  peer.burst.count = 0;
  peer.burst.bytes = 0;
  peer.burst.since = peer.transport->now();
}

// Whether one more message is held, for a peer that holds some. Makes progress now and then, so
// that a program which only sends does, too.
bool Engine::joins(Peer& peer, std::size_t bytes, SendMode mode) noexcept {
  Burst& burst = peer.burst;
  if (mode != SendMode::nonblocking || static_cast<std::int64_t>(bytes) > peer.bundled ||
      peer.throttled || progressing_)
    return false;
  const bool full =
      burst.count == most_bundled || burst.bytes + in_bundle(bytes) > bundle_room(peer);
  const bool looks = full || burst.count % unseen == unseen - 1;
  const double held = looks ? peer.transport->now() - burst.since : 0;
  if (full || held > longest_hold) {
    deliver();
    if (!open(peer) || burst.barred != 0) return false;
    hold(peer);
  }
  ++burst.count;
  burst.bytes += static_cast<std::uint32_t>(in_bundle(bytes));
  return true;
}

// They leave. What the burst itself takes, where it is slow, is no computation.
void Engine::end_hold(Peer& peer) noexcept {
  Burst& burst = peer.burst;
  peer.holds = false;
  if (peer.transport->now() - burst.since <= longest_hold + burst.count * longest_pause) {
    burst.penalty /= 2;
  } else {
    burst.penalty = std::clamp(4 * burst.penalty, fewest_barred, most_barred);
    burst.barred = burst.penalty;
  }
}

// Something else is to be sent. Perhaps by a continuation while backlogs are flushed one after the
// other, so the peer stays in their list until the next look.
void Engine::send_held(Peer& peer) noexcept {
  if (stands_) {
    post_backlog(peer);
  } else {
    const Progressing guard(*this);
    post_backlog(peer);
  }
  update_short_limit(peer);
}

std::size_t Engine::bundle_room(const Peer& peer) {
  return peer.transport->limits().message - sizeof(wire::Bundle);
}

// Takes those off the front of a backlog that travel together, and sends them. False: there are no
// two of them, or there is no room.
bool Engine::flush_bundle(Peer& peer) noexcept {
  std::array<SendRequest*, most_bundled> sends;
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const Deferred& waiting : peer.backlog) {
    if (waiting.type != Deferred::Type::eager || count == sends.size()) break;
    SendRequest& send = *waiting.send;
    if (send.mode == SendMode::synchronous ||
        static_cast<std::int64_t>(send.bytes) > peer.bundled ||
        bytes + in_bundle(send.bytes) > bundle_room(peer))
      break;
    bytes += in_bundle(send.bytes);
    sends[count++] = &send;
  }
  if (count < 2) return false;
  std::byte* const block = buffers_.try_take(bytes);
  if (block == nullptr) return false;
  std::byte* at = block;
  const auto add = [&at](const void* from, std::size_t length) {
    base::copy(at, from, length);
    at += length;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const SendRequest& send = *sends[i];
    const wire::Eager header = wire::eager_header(send.envelope, wire::Kind::eager);
    const auto length = static_cast<wire::BundledBytes>(sizeof header + send.bytes);
    add(&length, sizeof length);
    add(&header, sizeof header);
    add(flat(send), send.bytes);
  }
  const wire::Bundle header;
  const Posted posted = peer.transport->send(*peer.link, &header, sizeof header, block, bytes);
  buffers_.give(block, bytes);
  if (posted == Posted::busy) return false;
  counters_.eager_sent += count;
  counters_.bundled += count;
  for (std::size_t i = 0; i < count; ++i)
    deferred_slab_.free(&peer.backlog.pop_front());
  for (std::size_t i = 0; i < count; ++i)
    finish_send(*sends[i], MPI_SUCCESS);
  return true;
}

void Engine::on_bundle(const Peer& peer, const std::byte* message, std::size_t bytes) noexcept {
  const std::byte* at = message + sizeof(wire::Bundle);
  const std::byte* const end = message + bytes;
  while (at != end && !failure_.noted()) {
    const auto left = static_cast<std::size_t>(end - at);
    wire::BundledBytes length = 0;
    if (left >= in_bundle(0)) std::memcpy(&length, at, sizeof length);
    if (length < sizeof(wire::Eager) || length > left - sizeof length)
      return on_failure(base::make_error(
          MPI_ERR_INTERN, "rank {} has sent a message of {} bytes in the last {} of a bundle",
          peer.rank, length, left));
    at += sizeof length;
    on_message(peer.rank, at, length);
    at += length;
  }
}

} // namespace macadam::engine
