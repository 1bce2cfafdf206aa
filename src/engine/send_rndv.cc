// SPDX-License-Identifier: BSD-3-Clause
// SEND_RNDV: the sender came first with a large message and says so; in the read form the receiver
// reads the data and sends FIN, in the write form it answers with its buffer, the sender writes and
// sends FIN (Small & Yuan, Figure 2). The data of HYBRID are read here too. In an exchange where
// processors copy, both forms are open, and the side that has nothing else to do first takes the
// permit that decides (exchange.cc).
#include "base/try_push.h"
#include "engine/engine.h"

#include <algorithm>

namespace macadam::engine {

// The SENDER_READY of a send, which now waits for the receiver.
wire::SenderReady Engine::offer(SendRequest& send) noexcept {
  const bool read = settings_.rendezvous == base::Rendezvous::read &&
                    try_register(*send.peer, flat(send), send.bytes, send.registered);
  if (!read && take_permit_back(send)) send.may_leave = false; // nobody knows of it yet
  if (read && send.permit == 0 && is_shared(send)) // 0: there are too many, the receiver reads
    send.permit = send.peer->transport->issue(*send.peer->link);
  send.is_registered = read;
  send.stage = SendStage::announced;
  ++counters_.sender_early;
  ++(read ? counters_.send_rndv_read : counters_.send_rndv_write);
  // The receiver may have announced this very receive meanwhile: then the announcement is used.
  send.counted =
      send.counted &&
      base::try_push(channel(*send.peer, send.envelope.context, send.envelope.tag)->waiting, &send);
  const wire::Offer form = send.permit != 0 ? wire::Offer::either
                           : read           ? wire::Offer::read
                                            : wire::Offer::write;
  return ready_of(send, form);
}

wire::SenderReady Engine::ready_of(const SendRequest& send, wire::Offer form) noexcept {
  return {.offer = form,
          .counted = send.counted,
          .synchronous = send.mode == SendMode::synchronous,
          .source = send.envelope.source,
          .tag = send.envelope.tag,
          .ordinal = static_cast<std::uint32_t>(send.ordinal),
          .context = send.envelope.context,
          .bytes = send.bytes,
          .send_id = send.id,
          .memory = send.registered,
          .permit = send.permit};
}

SendRequest* Engine::send_rndv(SendRequest& send) {
  const wire::SenderReady ready = offer(send);
  post_control(*send.peer, &ready, sizeof ready);
  return &send;
}

namespace {

// Of a wire::SenderReady or a Message.
template <class Offered>
void copy_offer(const Offered& from, Message& to) {
  to.rendezvous = true;
  to.bytes = from.bytes;
  to.send_id = from.send_id;
  to.memory = from.memory;
  to.permit = from.permit;
  to.offer = from.offer;
  to.counted = from.counted;
}

} // namespace

void Engine::on_sender_ready(Peer& peer, const wire::SenderReady& ready) noexcept {
  const Envelope envelope{ready.context, ready.source, ready.tag};
  ReceiveRequest* const receive = matcher_.take_receive(envelope);
  if (receive == nullptr) {
    if (Message* const kept = keep_unexpected(peer, envelope, ready.bytes))
      copy_offer(ready, *kept);
    return note(Step::Kind::kept, peer, envelope, ready.bytes, protocol_of(ready.offer));
  }
  bind(*receive, peer, envelope);
  note(Step::Kind::matched, *receive, peer, ready.bytes, protocol_of(ready.offer));
  Message offered;
  offered.peer = &peer;
  copy_offer(ready, offered);
  accept(*receive, offered);
}

// A receive has met a SENDER_READY: fetch the data, or tell the sender where to write them.
void Engine::accept(ReceiveRequest& receive, const Message& message) noexcept {
  receive.sender_id = message.send_id;
  receive.incoming = message.bytes;
  receiving_.push_back(receive);
  fetch(receive, message);
}

void Engine::fetch(ReceiveRequest& receive, const Message& message) noexcept {
  Peer& peer = *receive.peer;
  if (message.bytes != receive.capacity) stop_watching(receive); // a FIN will tell its length
  if (peer.state == PeerState::failed) return finish_receive(receive, 0, error_of_end());
  if (receive.announced && message.counted && message.offer != wire::Offer::hybrid) {
    // Both came at the same time (Figure 5 b): the sender will use the announcement. If it can.
    receive.stage = ReceiveStage::awaits_fin;
    if (receive.revoking)
      receive.offered = keep_offer(message);
    else if (message.offer == wire::Offer::either)
      await_idle(receive, message);
    return;
  }
  if (receive.id == 0) receive.id = receive_ids_.try_add(&receive);
  const std::size_t fits = std::min<std::size_t>(message.bytes, receive.capacity);
  const bool either = message.offer == wire::Offer::either;
  if (receive.id == 0 || !has_destination(receive)) { // the sender may go on
    if (either) peer.transport->use(*peer.link, message.permit);
    return finish_reading(receive, MPI_ERR_NO_MEM);
  }
  if ((message.offer == wire::Offer::write || either) && register_destination(receive)) {
    receive.stage = ReceiveStage::awaits_fin;
    wire::ReceiverReady ready{.answers = true,
                              .tag = receive.status.tag,
                              .context = receive.envelope.context,
                              .receive_id = receive.id,
                              .send_id = message.send_id,
                              .capacity = fits,
                              .memory = receive.registered};
    if (either) {
      await_idle(receive, message);
    } else if (settings_.last_byte && message.bytes == receive.capacity) {
      watch(receive, ready);
    }
    return post_control(peer, &ready, sizeof ready);
  }
  if (either && !peer.transport->use(*peer.link, message.permit)) {
    // The sender has taken the permit back. As it has no answer, it copies: SENDER_COPIED will
    // come.
    receive.stage = ReceiveStage::awaits_fin;
    return;
  }
  receive.stage = ReceiveStage::reading;
  stop_watching(receive); // what changes now is what we read
  note(Step::Kind::data, receive, peer, fits);
  if (fits == 0) return finish_reading(receive, MPI_SUCCESS);
  if (message.offer == wire::Offer::write) {
    ++counters_.pulled;
    return pull(receive);
  }
  post_get(peer, receive, message.memory, fits);
}

// For later, when it is known whether the announcement was taken back.
Message* Engine::keep_offer(const Message& message) noexcept {
  Message* const kept = message_slab_.try_make();
  if (kept == nullptr) {
    on_failure(base::no_memory("to keep the offer of a message"));
    return nullptr;
  }
  kept->peer = message.peer;
  copy_offer(message, *kept);
  return kept;
}

void Engine::finish_reading(ReceiveRequest& receive, std::int32_t error) noexcept {
  note(Step::Kind::fin_sent, receive, *receive.peer);
  acknowledge(*receive.peer, receive.sender_id);
  finish_receive(receive, receive.incoming, error);
}

// The data of a send have been read, or a synchronous EAGER has been matched.
void Engine::on_fin_to_sender(const wire::Fin& fin) noexcept {
  SendRequest* const send = send_ids_.find(fin.id);
  if (send == nullptr) return;
  stop_waiting(*send);
  if (!send->left_behind) note(Step::Kind::fin_arrived, *send);
  if (!send->hybrid) note(Step::Kind::released, *send);
  finish_send(*send, MPI_SUCCESS);
}

// The send needs no announcement any more.
void Engine::stop_waiting(SendRequest& send) noexcept {
  if (!send.counted || send.hybrid) return;
  Channel* const counting = channel(*send.peer, send.envelope.context, send.envelope.tag);
  if (counting != nullptr) std::erase(counting->waiting, &send);
}

} // namespace macadam::engine
