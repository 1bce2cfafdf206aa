// SPDX-License-Identifier: BSD-3-Clause
// HYBRID: the sender copies a medium message to a buffer of the library, says where it is and
// leaves; the receiver reads it (Small & Yuan, Figure 4). Like EAGER for the sender, but without a
// buffer at the receiver. The reading half is in send_rndv.cc.
//
// Where the receiver can read the user's memory by itself, and a permit says who moves the data
// (exchange.cc), the copy is not made before it is needed: when the sender has nothing to do but
// wait, and the receiver still has not come. Then the permit is taken back, and SENDER_COPIED tells
// the receiver where the copy is. Most receivers come in time, and no copy is made.
#include "base/copy.h"
#include "datatype/cursor.h"
#include "engine/engine.h"
#include "engine/mutant.h"

#include <algorithm>

namespace macadam::engine {
namespace {

// Bytes that are copied between two looks for the receiver's announcement.
constexpr std::size_t between_looks = 4 << 10;

} // namespace

// Whether this send may wait for its receiver at first.
bool Engine::copies_later(const SendRequest& send) const noexcept {
  const Peer& peer = *send.peer;
  return (send.mode == SendMode::blocking || send.mode == SendMode::nonblocking) &&
         !send.noncontiguous && send.bytes > peer.eager && peer.state == PeerState::connected &&
         settings_.rendezvous == base::Rendezvous::read && peer.transport->limits().copies &&
         peer.transport->why_not_direct(*peer.link) == nullptr;
}

// Makes a copy, unless the library has no memory for it or the receiver has announced itself
// meanwhile (Figure 6, Isend (8)): then the rest need not be copied, but where the copy packs.
void Engine::copy_for_hybrid(SendRequest& send) {
  Peer& peer = *send.peer;
  datatype::PackCursor cursor(*send.data.type, send.data.address, send.data.count);
  auto* const copy = static_cast<std::byte*>(peer.transport->allocate(send.bytes));
  if (copy == nullptr) return;
  std::size_t copied = 0;
  while (copied < send.bytes) {
    copied += cursor.pack(copy + copied, std::min(between_looks, send.bytes - copied));
    deliver();
    if (copied < send.bytes && !send.noncontiguous && is_announced(peer, send.envelope))
      return peer.transport->free(copy);
  }
  free_bounce(send);
  send.bounce = copy;
  send.hybrid = true;
  send.detached = true; // for the user it is complete; the request keeps the copy
}

void Engine::offer_copy(SendRequest& send) {
  send.is_registered = try_register(*send.peer, send.bounce, send.bytes, send.registered);
  send.stage = SendStage::announced;
  ++counters_.hybrid_sent;
  ++counters_.sender_early;
  const wire::SenderReady ready =
      ready_of(send, send.is_registered ? wire::Offer::hybrid : wire::Offer::write);
  post_control(*send.peer, &ready, sizeof ready);
}

void Engine::leave(SendRequest& send) noexcept {
  send.may_leave = false;
  if (send.stage != SendStage::announced || send.permit == 0 || send.cancelling || progressing_)
    return;
  Transport& transport = *send.peer->transport;
  SendRequest* const copy = send_slab_.try_make();
  if (copy == nullptr) return;
  copy->peer = send.peer;
  copy->bytes = send.bytes;
  try {
    copy->bounce = static_cast<std::byte*>(transport.allocate(send.bytes));
  } catch (...) { // as if there were no room
  }
  copy->hybrid = true;
  copy->id = send_ids_.try_add(copy);
  copy->is_registered = copy->bounce != nullptr && copy->id != 0 &&
                        try_register(*copy->peer, copy->bounce, copy->bytes, copy->registered);
  if (copy->is_registered && copy_before_leaving(send, copy->bounce)) return hand_over(send, *copy);
  if (copy->is_registered) transport.release_cached(copy->registered);
  if (copy->id != 0) send_ids_.remove(copy->id);
  free_bounce(*copy);
  recycle(copy);
}

// False if the receiver comes before all is copied.
bool Engine::copy_before_leaving(SendRequest& send, std::byte* to) noexcept {
  if (!is_mutant(Mutant::copied_while_read) && !take_permit_back(send)) return false;
  const std::uint64_t id = send.id;
  const std::byte* const from = flat(send);
  for (std::size_t copied = 0; copied < send.bytes;) {
    const std::size_t piece = std::min(between_looks, send.bytes - copied);
    base::copy(to + copied, from + copied, piece);
    copied += piece;
    deliver();
    // It may have ended, and be another send by now.
    if (send_ids_.find(id) != &send || send.stage != SendStage::announced) return false;
  }
  return true;
}

// The copy is what the receiver gets.
void Engine::hand_over(SendRequest& send, SendRequest& copy) noexcept {
  stop_waiting(send);
  copy.envelope = send.envelope;
  copy.data = send.data; // by which tests tell whose it is
  copy.stage = SendStage::announced;
  copy.detached = true;
  copy.left_behind = true;
  sends_.push_back(copy);
  --counters_.send_rndv_read;
  ++counters_.hybrid_sent;
  const wire::SenderCopied copied{.source = send.envelope.source,
                                  .tag = send.envelope.tag,
                                  .context = send.envelope.context,
                                  .send_id = send.id,
                                  .copy_id = copy.id,
                                  .memory = copy.registered};
  post_control(*send.peer, &copied, sizeof copied);
  note(Step::Kind::crossed, send, Protocol::hybrid);
  finish_send(send, MPI_SUCCESS);
}

// The message waits for its receive, or the receive for the sender to move the data.
void Engine::on_sender_copied(Peer& peer, const wire::SenderCopied& copied) noexcept {
  const Envelope envelope{copied.context, copied.source, copied.tag};
  Message* message = matcher_.find_sent(envelope, peer, copied.send_id);
  for (auto at = probed_.begin(); message == nullptr && at != probed_.end(); ++at) {
    if (at->peer == &peer && at->send_id == copied.send_id) message = &*at;
  }
  if (message != nullptr) return adopt(*message, copied);
  for (ReceiveRequest& receive : receiving_) {
    if (receive.peer == &peer && receive.sender_id == copied.send_id)
      return read_copy(receive, copied);
  }
  acknowledge(peer, copied.copy_id); // the receive has ended without the data
}

void Engine::adopt(Message& message, const wire::SenderCopied& copied) noexcept {
  message.send_id = copied.copy_id;
  message.memory = copied.memory;
  message.permit = 0;
  message.offer = wire::Offer::hybrid;
}

void Engine::read_copy(ReceiveRequest& receive, const wire::SenderCopied& copied) noexcept {
  receive.sender_id = copied.copy_id;
  if (receive.sender_permit != 0) std::erase(unread_, &receive);
  receive.sender_permit = 0;
  if (receive.offered != nullptr) return adopt(*receive.offered, copied);
  Message message;
  message.peer = receive.peer;
  message.bytes = receive.incoming;
  adopt(message, copied);
  fetch(receive, message);
}

} // namespace macadam::engine
