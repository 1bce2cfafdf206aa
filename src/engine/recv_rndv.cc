// SPDX-License-Identifier: BSD-3-Clause
// RECV_RNDV: the receiver came first and announces its buffer with the ordinal of the message that
// it is for; the sender writes there and sends FIN (Small & Yuan, Figure 5 and section 4.1).
// Soundness rests on two rules: a receive announces itself only when its ordinal is certain, and
// the sender uses an announcement only for the message with that ordinal.
#include "base/try_push.h"
#include "engine/engine.h"
#include "engine/mutant.h"

#include <algorithm>
#include <utility>

namespace macadam::engine {

// Certain: source and tag given, counted, and no earlier wildcard receive could take its message.
bool Engine::may_announce(const ReceiveRequest& receive) const {
  return receive.channel != nullptr && !receive.channel->revoking &&
         (matcher_.wildcards() == 0 || is_mutant(Mutant::announcing_wildcard) ||
          !matcher_.wildcard_before(receive.envelope, receive.sequence));
}

void Engine::announce(ReceiveRequest& receive, std::uint64_t ordinal) noexcept {
  Peer& peer = *receive.peer;
  if (receive.id == 0) receive.id = receive_ids_.try_add(&receive);
  if (receive.id == 0 || !has_destination(receive) || !register_destination(receive))
    return; // the sender will ask
  receive.permit = peer.transport->issue(*peer.link);
  if (receive.permit == 0) return; // the same
  receive.announced = true;
  ++counters_.announcements;
  wire::ReceiverReady ready{.tag = receive.envelope.tag,
                            .context = receive.envelope.context,
                            .ordinal = ordinal,
                            .receive_id = receive.id,
                            .permit = receive.permit,
                            .capacity = receive.capacity,
                            .memory = receive.registered};
  if (settings_.last_byte) watch(receive, ready);
  if (observer_ != nullptr) [[unlikely]]
    tell_announced(receive, ordinal);
  post_control(peer, &ready, sizeof ready);
}

// A wildcard was resolved, or announcements were taken back: those that stood behind it may
// announce now, in the order of posting.
void Engine::announce_held() noexcept {
  for (auto at = held_.begin(); at != held_.end() && !failure_.noted();) {
    ReceiveRequest& receive = *at;
    ++at;
    if (!may_announce(receive)) continue;
    base::List<ReceiveRequest, Held>::erase(receive);
    announce(receive, ordinal_of(receive));
  }
}

// The receive of the next message to be sent has announced itself; it may have been cancelled.
bool Engine::has_announcement(Peer& peer, const Envelope& envelope) noexcept {
  const Channel* const counting = channel(peer, envelope.context, envelope.tag);
  return counting != nullptr &&
         std::ranges::any_of(counting->announcements, [&](const Announcement& announcement) {
           return announcement.ordinal == counting->sent;
         });
}

// The receive of the next message to be sent has announced itself, and cannot be cancelled any
// more: it must get that message.
bool Engine::is_announced(Peer& peer, const Envelope& envelope) noexcept {
  Channel* const counting = channel(peer, envelope.context, envelope.tag);
  return counting != nullptr && find_announcement(peer, *counting, counting->sent) != nullptr;
}

// The announcement for this ordinal, the front one, if it is there and not taken back: it is to be
// used now. Older ones are dropped on the way.
Announcement* Engine::find_announcement(Peer& peer, Channel& channel,
                                        std::uint64_t ordinal) noexcept {
  auto& list = channel.announcements;
  const auto first = std::find_if(list.begin(), list.end(), [&](const Announcement& a) {
    return a.ordinal >= ordinal || is_mutant(Mutant::stale_ready);
  });
  counters_.announcements_dropped += static_cast<std::uint64_t>(first - list.begin());
  list.erase(list.begin(), first);
  if (list.empty()) return nullptr;
  if (list.front().ordinal != ordinal && !is_mutant(Mutant::stale_ready)) return nullptr;
  if (!use(peer, list.front())) {
    ++counters_.announcements_dropped;
    list.erase(list.begin());
    return nullptr;
  }
  return &list.front();
}

// False if the receiver has taken it back.
bool Engine::use(Peer& peer, Announcement& announcement) noexcept {
  const std::uint64_t permit = std::exchange(announcement.permit, 0);
  return permit == 0 || is_mutant(Mutant::revoked_permit) ||
         peer.transport->use(*peer.link, permit);
}

void Engine::on_receiver_ready(Peer& peer, const wire::ReceiverReady& ready) noexcept {
  Announcement target{ready.ordinal, ready.receive_id, ready.capacity, 0,
                      ready.memory,  ready.watched,    ready.last_byte};
  if (ready.answers) { // a SENDER_READY, write form or either
    SendRequest* const send = send_ids_.find(ready.send_id);
    if (send == nullptr || send->stage != SendStage::announced) return;
    stop_waiting(*send);
    note(Step::Kind::released, *send);
    if (send->permit != 0) return write_when_idle(*send, target);
    return write_to(*send, target);
  }
  note(Step::Kind::announcement, peer, {ready.context, 0, ready.tag}, ready.capacity,
       Protocol::recv_rndv, ready.ordinal);
  target.permit = ready.permit;
  // Its communicator is freed here: its message has gone another way (contexts are never used
  // again).
  Channel* const counting =
      dropped_.contains(ready.context) ? nullptr : channel(peer, ready.context, ready.tag);
  if (counting == nullptr) {
    ++counters_.announcements_dropped;
    return;
  }
  if (ready.ordinal >= counting->sent) return keep_announcement(*counting, target);
  const auto crossed = std::find_if(counting->waiting.begin(), counting->waiting.end(),
                                    [&](SendRequest* s) { return s->ordinal == ready.ordinal; });
  // Its message went by EAGER or HYBRID; or the receive was cancelled, and the one that moves up
  // may announce itself yet.
  if (crossed == counting->waiting.end() || !use(peer, target)) {
    ++counters_.announcements_dropped;
    return;
  }
  SendRequest& send = **crossed;
  counting->waiting.erase(crossed);
  --counters_.sender_early;
  --(send.is_registered ? counters_.send_rndv_read : counters_.send_rndv_write);
  ++counters_.both;
  ++counters_.recv_rndv;
  note(Step::Kind::crossed, send, Protocol::recv_rndv);
  if (send.permit != 0) return write_when_idle(send, target);
  write_to(send, target);
}

// For a message still to be sent.
void Engine::keep_announcement(Channel& channel, const Announcement& target) noexcept {
  auto& list = channel.announcements;
  const auto stale = std::find_if(list.begin(), list.end(),
                                  [&](const Announcement& a) { return a.ordinal >= channel.sent; });
  counters_.announcements_dropped += static_cast<std::uint64_t>(stale - list.begin());
  list.erase(list.begin(), stale);
  // Where announcements were taken back, receives posted meanwhile may announce themselves before
  // earlier ones; and of two for one ordinal the first was taken back.
  const auto at = std::lower_bound(
      list.begin(), list.end(), target,
      [](const Announcement& a, const Announcement& b) { return a.ordinal < b.ordinal; });
  if (at != list.end() && at->ordinal == target.ordinal) {
    ++counters_.announcements_dropped;
    *at = target;
    return;
  }
  if (base::try_insert(list, at, target)) return;
  // Its receive would wait for its use: the messages to come do not say that they could use one.
  ++counters_.announcements_dropped;
  channel.uncounted = true;
}

// Writes a message to the receiver's buffer.
void Engine::write_to(SendRequest& send, const Announcement& target) noexcept {
  const std::size_t fits = std::min<std::size_t>(send.bytes, target.capacity);
  if (target.watched && is_seen_by_last_byte(send, target)) {
    std::uint32_t none = 0;
    send.stage = SendStage::written;
    post_put(*send.peer, send, target.memory, fits, none, nullptr);
    ++counters_.last_byte;
    if (send.stage == SendStage::written) finish_send(send, send.status.error);
    return;
  }
  const bool tells =
      fits != 0 && fits == send.bytes && fits <= send.peer->transport->limits().notified_put;
  write_and_tell(send, target.memory, fits, tells ? base::short_id(target.receive_id) : 0,
                 {.kind = wire::Kind::fin_to_receiver,
                  .source = send.envelope.source,
                  .id = target.receive_id,
                  .bytes = send.bytes});
}

// Writes the data of a send. The put goes first, then FIN, unless the put can say itself by
// `notification` (0: it must not) that it is there; only then may the send be complete, since its
// completion can start other sends.
void Engine::write_and_tell(SendRequest& send, RemoteMemory to, std::size_t bytes,
                            std::uint32_t notification, const wire::Fin& fin) noexcept {
  send.stage = SendStage::written;
  if (bytes != 0 && !post_put(*send.peer, send, to, bytes, notification, &fin)) return;
  if (notification == 0) {
    wire::Fin end = fin;
    end.lacks = send.status.error != MPI_SUCCESS;
    note(Step::Kind::fin_sent, send);
    post_control(*send.peer, &end, sizeof end);
  }
  if (send.stage == SendStage::written) finish_send(send, send.status.error);
}

void Engine::on_fin_to_receiver(Peer& peer, const wire::Fin& fin) noexcept {
  ReceiveRequest* const receive = receive_ids_.find(fin.id);
  if (receive == nullptr) return;
  note(Step::Kind::fin_arrived, *receive, peer);
  finish_written(peer, *receive, fin.source, fin.bytes, fin.lacks ? MPI_ERR_OTHER : MPI_SUCCESS);
}

// The data are in the receive's destination, or will never be.
void Engine::finish_written(Peer& peer, ReceiveRequest& receive, std::int32_t source,
                            std::uint64_t bytes, std::int32_t error) noexcept {
  if (receive.stage == ReceiveStage::posted) { // the announcement was used: this is the match
    matcher_.remove(receive);
    bind(receive, peer, {receive.envelope.context, source, receive.envelope.tag});
    receiving_.push_back(receive);
    note(Step::Kind::matched, receive, peer, bytes, Protocol::recv_rndv);
  }
  finish_receive(receive, bytes, error);
}

} // namespace macadam::engine
