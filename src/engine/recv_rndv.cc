// SPDX-License-Identifier: BSD-3-Clause
// RECV_RNDV: the receiver came first and announces its buffer with the ordinal of the message that
// it is for; the sender writes there and sends FIN (Small & Yuan, Figure 5 and section 4.1).
// Soundness rests on two rules: a receive announces itself only when its ordinal is certain, and
// the sender uses an announcement only for the message with that ordinal.
#include "engine/engine.h"
#include "engine/plant.h"

#include <algorithm>

namespace macadam::engine {

// Certain: source and tag given, counted, and no earlier wildcard receive could take its message.
bool Engine::may_announce(const ReceiveRequest& receive) const {
  return receive.channel != nullptr && !receive.channel->retracting &&
         (matcher_.wildcards() == 0 || planted(Plant::announcing_wildcard) ||
          !matcher_.wildcard_before(receive.envelope, receive.sequence));
}

void Engine::announce(ReceiveRequest& receive, std::uint64_t ordinal) {
  if (!register_landing(receive)) return; // the sender will ask
  if (receive.id == 0) receive.id = receive_ids_.add(&receive);
  receive.announced = true;
  ++counters_.announcements;
  wire::ReceiverReady ready{.tag = receive.envelope.tag,
                            .context = receive.envelope.context,
                            .ordinal = ordinal,
                            .receive_id = receive.id,
                            .capacity = receive.capacity,
                            .memory = receive.registered};
  if (settings_.last_byte) watch(receive, ready);
  post_control(*receive.peer, &ready, sizeof ready);
}

// A wildcard was resolved or a retraction answered: those that stood behind it may announce now, in
// the order of posting.
void Engine::announce_held() {
  for (auto at = held_.begin(); at != held_.end();) {
    ReceiveRequest& receive = *at;
    ++at;
    if (!may_announce(receive)) continue;
    base::List<ReceiveRequest, Held>::erase(receive);
    announce(receive, ordinal_of(receive));
  }
}

// The receive of the next message to be sent has announced itself.
bool Engine::is_announced(Peer& peer, const Envelope& envelope) {
  const Channel* const counting = channel(peer, envelope.context, envelope.tag);
  return counting != nullptr &&
         std::any_of(counting->announcements.begin(), counting->announcements.end(),
                     [&](const Announcement& a) { return a.ordinal == counting->sent; });
}

// The announcement for this ordinal, if it is there; older ones are dropped on the way.
bool Engine::take_announcement(Channel& channel, std::uint64_t ordinal, Announcement& found) {
  auto& list = channel.announcements;
  const auto first = std::find_if(list.begin(), list.end(), [&](const Announcement& a) {
    return a.ordinal >= ordinal || planted(Plant::stale_ready);
  });
  counters_.announcements_dropped += static_cast<std::uint64_t>(first - list.begin());
  list.erase(list.begin(), first);
  if (list.empty()) return false;
  if (list.front().ordinal != ordinal && !planted(Plant::stale_ready)) return false;
  found = list.front();
  list.erase(list.begin());
  return true;
}

void Engine::on_receiver_ready(Peer& peer, const wire::ReceiverReady& ready) {
  const Announcement target{ready.ordinal, ready.receive_id, ready.capacity,
                            ready.memory,  ready.watched,    ready.last_byte};
  if (ready.send_id != 0) { // the answer to a SENDER_READY, write form
    SendRequest* const send = send_ids_.find(ready.send_id);
    if (send == nullptr || send->stage != SendStage::announced) return;
    stop_waiting(*send);
    return write_to(*send, target);
  }
  // Of a communicator that is freed here: its message has gone another way (contexts are never used
  // again).
  Channel* const counting =
      dropped_.contains(ready.context) ? nullptr : channel(peer, ready.context, ready.tag);
  if (counting == nullptr) {
    ++counters_.announcements_dropped;
    return;
  }
  if (ready.ordinal >= counting->sent) { // for a message still to be sent
    auto& list = counting->announcements;
    const auto stale = std::find_if(list.begin(), list.end(), [&](const Announcement& a) {
      return a.ordinal >= counting->sent;
    });
    counters_.announcements_dropped += static_cast<std::uint64_t>(stale - list.begin());
    list.erase(list.begin(), stale);
    // After a retraction, receives posted meanwhile may announce themselves before earlier ones.
    list.insert(std::upper_bound(list.begin(), list.end(), target,
                                 [](const Announcement& a, const Announcement& b) {
                                   return a.ordinal < b.ordinal;
                                 }),
                target);
    return;
  }
  const auto crossed = std::find_if(counting->waiting.begin(), counting->waiting.end(),
                                    [&](SendRequest* s) { return s->ordinal == ready.ordinal; });
  if (crossed == counting->waiting.end()) { // its message went by EAGER or HYBRID
    ++counters_.announcements_dropped;
    return;
  }
  SendRequest& send = **crossed;
  counting->waiting.erase(crossed);
  --counters_.sender_early;
  --(send.is_registered ? counters_.send_rndv_read : counters_.send_rndv_write);
  ++counters_.both;
  ++counters_.recv_rndv;
  write_to(send, target);
}

// Writes a message to the receiver's buffer. The put goes first, then FIN, unless the put brings
// the whole message and can say so itself; only then may the send be complete, since its completion
// can start other sends.
void Engine::write_to(SendRequest& send, const Announcement& target) {
  Peer& peer = *send.peer;
  const std::size_t fits = std::min<std::size_t>(send.bytes, target.capacity);
  const bool seen = target.watched && is_seen_by_last_byte(send, target);
  const bool tells =
      !seen && fits != 0 && fits == send.bytes && fits <= peer.transport->limits().noticed_put;
  std::uint32_t notice = tells ? base::short_id(target.receive_id) : 0;
  const wire::Fin fin{.kind = wire::Kind::fin_to_receiver,
                      .source = send.envelope.source,
                      .id = target.receive_id,
                      .bytes = send.bytes};
  send.stage = SendStage::written;
  if (fits != 0) post_put(peer, send, target.memory, fits, notice, fin);
  if (seen)
    ++counters_.last_byte;
  else if (notice == 0)
    post_control(peer, &fin, sizeof fin);
  if (send.stage == SendStage::written) finish_send(send, MPI_SUCCESS);
}

void Engine::on_fin_to_receiver(Peer& peer, const wire::Fin& fin) {
  ReceiveRequest* const receive = receive_ids_.find(fin.id);
  if (receive != nullptr) finish_written(peer, *receive, fin.source, fin.bytes);
}

// The data are in the receive's landing.
void Engine::finish_written(Peer& peer, ReceiveRequest& receive, std::int32_t source,
                            std::uint64_t bytes) {
  if (receive.stage == ReceiveStage::posted) { // the announcement was used: this is the match
    matcher_.remove(receive);
    bind(receive, peer, {receive.envelope.context, source, receive.envelope.tag});
    receiving_.push_back(receive);
  }
  finish_receive(receive, bytes, MPI_SUCCESS);
}

} // namespace macadam::engine
