// SPDX-License-Identifier: BSD-3-Clause
// EAGER: the data travel with the header (Small & Yuan, section 3.1). The sender is done once the
// transport has copied them, or has sent them where it need not. A synchronous send waits for a FIN
// that says it was matched.
#include "base/copy.h"
#include "base/error.h"
#include "datatype/cursor.h"
#include "engine/engine.h"
#include "engine/mutant.h"

#include <algorithm>

namespace macadam::engine {

// `held`: behind others of a burst.
SendRequest* Engine::send_eager(SendRequest& send, bool held) {
  Peer& peer = *send.peer;
  const Posted posted = held || !may_post(peer) ? Posted::busy : transmit_eager(send);
  if (posted == Posted::busy) {
    if (Deferred* const waiting = defer(peer, Deferred::Type::eager)) waiting->send = &send;
    return &send;
  }
  const bool in_use = posted == Posted::pending && !is_mutant(Mutant::uncopied_is_done);
  if (in_use || send.mode == SendMode::synchronous) return &send;
  finish_send(send, MPI_SUCCESS);
  recycle(&send);
  return nullptr;
}

Posted Engine::transmit_eager(SendRequest& send) noexcept {
  const bool synchronous = send.mode == SendMode::synchronous;
  const wire::Kind kind = synchronous ? wire::Kind::eager_synchronous : wire::Kind::eager;
  const wire::EagerSynchronous header{.eager = wire::eager_header(send.envelope, kind),
                                      .send_id_low = static_cast<std::uint32_t>(send.id),
                                      .send_id_high = static_cast<std::uint32_t>(send.id >> 32)};
  const std::size_t header_bytes = synchronous ? sizeof header : sizeof header.eager;
  Peer& peer = *send.peer;
  const Posted posted =
      synchronous || send.bytes < peer.uncopied
          ? peer.transport->send(*peer.link, &header, header_bytes, flat(send), send.bytes)
          : peer.transport->send_uncopied(*peer.link, &header, header_bytes, flat(send), send.bytes,
                                          send.id);
  if (posted == Posted::busy) return posted;
  send.stage = posted == Posted::pending ? SendStage::leaving : SendStage::awaits_ack;
  ++counters_.eager_sent;
  return posted;
}

void Engine::on_eager_synchronous(Peer& peer, const std::byte* message,
                                  std::size_t bytes) noexcept {
  const EagerView view = view_eager(message, bytes, true);
  if (ReceiveRequest* receive = matcher_.take_receive(view.envelope)) {
    bind(*receive, peer, view.envelope);
    acknowledge(peer, view.send_id);
    return deliver(*receive, view.data, view.bytes);
  }
  keep_eager(peer, view);
}

// Tells the sender that its data have been read, or that its synchronous send is matched.
void Engine::acknowledge(Peer& peer, std::uint64_t send_id) noexcept {
  const wire::Fin fin{.kind = wire::Kind::fin_to_sender, .id = send_id};
  post_control(peer, &fin, sizeof fin);
}

// No receive was posted.
void Engine::keep_eager(Peer& peer, EagerView view) noexcept {
  const Message* const kept = keep_data(peer, view, view.bytes);
  if (kept != nullptr && kept->data != nullptr) base::copy(kept->data, view.data, view.bytes);
}

// A message of `bytes` that was not expected. If there is no memory for its data, the receive that
// matches it will say so.
Message* Engine::keep_data(Peer& peer, const EagerView& view, std::size_t bytes) noexcept {
  Message* const kept = keep_unexpected(peer, view.envelope, bytes);
  if (kept == nullptr) return nullptr;
  kept->send_id = view.send_id;
  if (bytes == 0) return kept;
  kept->data = buffers_.try_take(bytes);
  kept->lost = kept->data == nullptr;
  if (kept->lost) return kept;
  unexpected_bytes_ += room(*kept);
  counters_.unexpected_bytes_most =
      std::max<std::uint64_t>(counters_.unexpected_bytes_most, unexpected_bytes_);
  if (unexpected_bytes_ > static_cast<std::size_t>(settings_.unexpected_limit))
    throttle(peer, true);
  return kept;
}

void Engine::deliver_long(ReceiveRequest& receive, const std::byte* data,
                          std::size_t bytes) noexcept {
  const std::size_t fits = std::min(bytes, receive.capacity);
  if (!receive.noncontiguous) {
    base::copy(receive.data.address, data, fits);
  } else if (receive.bounce != nullptr) { // announced: finish_receive() unpacks its bounce buffer
    base::copy(receive.bounce, data, fits);
  } else if (!datatype::unpack(*receive.noncontiguous, receive.data.address, receive.data.count,
                               data, fits)) {
    return finish_receive(receive, bytes, MPI_ERR_NO_MEM);
  }
  finish_receive(receive, bytes, MPI_SUCCESS);
}

// The room for unexpected data of this process is used up, or half free again: tells the sender to
// offer its messages without data, or to send them eagerly again.
void Engine::throttle(Peer& peer, bool on) noexcept {
  if (peer.throttled_by_us == on) return;
  peer.throttled_by_us = on;
  if (on) {
    ++throttled_;
    ++counters_.throttles;
  } else {
    --throttled_;
  }
  const wire::Throttle packet{.on = on};
  post_control(peer, &packet, sizeof packet);
}

} // namespace macadam::engine
