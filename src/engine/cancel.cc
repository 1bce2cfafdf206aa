// SPDX-License-Identifier: BSD-3-Clause
// Operations taken back. A pending receive goes at once, whatever other processes do: if it, or one
// behind it on its channel, has been announced, the permits of these announcements are revoked
// first, the last one first, and those behind announce themselves anew with the ordinals that they
// have then. A permit that the sender has used says that the message of every receive before it has
// been sent too: then the cancel fails.
//
// A send whose message waits for a receive asks the receiver to forget it (WITHDRAW).
#include "engine/engine.h"

#include <cstring>
#include <utility>

namespace macadam::engine {

// ---- Receives.

void Engine::cancel(ReceiveRequest& receive) {
  if (receive.complete || receive.stage != ReceiveStage::posted || receive.cancelling) return;
  Channel* const counting = receive.channel;
  if (counting == nullptr) return cancel_pending(receive);
  if (!counting->revoking) revoking_.push_back({receive.peer, counting, 0});
  aside_ = true;
  receive.cancelling = true;
  if (std::exchange(counting->revoking, true)) return; // goes on with what is under way
  continue_cancel(revoking_.size() - 1);
}

// Takes it out of the queue and completes it as cancelled.
void Engine::cancel_pending(ReceiveRequest& receive) noexcept {
  matcher_.remove(receive);
  if (receive.channel != nullptr) --receive.channel->pending;
  base::List<ReceiveRequest, Held>::erase(receive);
  receiving_.push_back(receive);
  receive.status.cancelled = true;
  finish_receive(receive, 0, MPI_SUCCESS);
  if (!held_.empty()) announce_held();
}

// Cancels what can be cancelled on this channel now. True at the end, when the row is gone; false
// if the network has not said yet what became of a permit.
bool Engine::continue_cancel(std::size_t row) noexcept {
  Peer& peer = *revoking_[row].peer;
  Channel& counting = *revoking_[row].channel;
  for (;;) {
    ReceiveRequest* asked = receive_ids_.find(std::exchange(revoking_[row].receive_id, 0));
    if (asked == nullptr || asked->permit == 0) {
      ReceiveRequest* first = nullptr;
      asked = nullptr;
      for_each_pending(counting, [&](ReceiveRequest& receive) {
        if (first == nullptr && receive.cancelling) first = &receive;
        if (first != nullptr && receive.announced) asked = &receive;
      });
      if (first == nullptr) break;
      if (asked == nullptr) {
        cancel_pending(*first);
        continue;
      }
    }
    if (!take_announcement_back(*asked)) {
      revoking_[row].receive_id = asked->id;
      return false;
    }
  }
  counting.revoking = false;
  revoking_.erase(revoking_.begin() + static_cast<std::ptrdiff_t>(row));
  if (dropped_.contains(counting.context)) peer.channels.drop_all(counting.context, 1);
  if (!held_.empty()) announce_held();
  return true;
}

bool Engine::continue_cancels() noexcept {
  bool moved = false;
  for (std::size_t row = revoking_.size(); row-- > 0;)
    moved = continue_cancel(row) || moved;
  return moved;
}

// An announcement that has not left yet never will.
bool Engine::is_unsent(Peer& peer, const ReceiveRequest& receive) noexcept {
  for (Deferred& waiting : peer.backlog) {
    wire::ReceiverReady ready;
    if (waiting.control_bytes != sizeof ready) continue;
    std::memcpy(&ready, waiting.control.data(), sizeof ready);
    if (ready.kind != wire::Kind::receiver_ready || ready.answers || ready.receive_id != receive.id)
      continue;
    base::List<Deferred>::erase(waiting);
    deferred_slab_.free(&waiting);
    if (peer.backlog.empty()) {
      base::ListNode<Backlogged>& node = peer;
      node.unlink();
      update_short_limit(peer);
    }
    return true;
  }
  return false;
}

// False if it is not known yet whether the sender has used the announcement.
bool Engine::take_announcement_back(ReceiveRequest& receive) noexcept {
  Peer& peer = *receive.peer;
  const Revoked revoked =
      is_unsent(peer, receive) ? Revoked::yes : peer.transport->revoke(*peer.link, receive.permit);
  receive.revoking = revoked == Revoked::unknown;
  if (receive.revoking) return false;
  Message* const offered = std::exchange(receive.offered, nullptr);
  if (revoked == Revoked::yes) {
    ++counters_.retractions;
    peer.transport->discard(*peer.link, std::exchange(receive.permit, 0));
    receive.announced = false;
    stop_watching(receive);
    if (receive.stage == ReceiveStage::posted) {
      if (!receive.cancelling) held_.push_back(receive);
    } else if (offered != nullptr) {
      fetch(receive, *offered);
    }
  } else if (receive.stage == ReceiveStage::posted) {
    bool before = true; // and itself
    for_each_pending(*receive.channel, [&](ReceiveRequest& other) {
      if (before) other.cancelling = false;
      before = before && &other != &receive;
    });
  }
  if (offered != nullptr) free_message(*offered);
  return true;
}

// ---- Sends.

void Engine::cancel(SendRequest& send) {
  const bool waits =
      send.stage < SendStage::unwritten && send.stage != SendStage::leaving; // for a receive
  if (send.complete || send.cancelling || !waits) return;
  send.cancelling = true;
  const wire::Withdraw withdraw{.source = send.envelope.source,
                                .tag = send.envelope.tag,
                                .context = send.envelope.context,
                                .send_id = send.id};
  post_control(*send.peer, &withdraw, sizeof withdraw);
}

// A message that nothing has matched: no receive of its channel is pending, so no announcement
// depends on its ordinal.
void Engine::on_withdraw(Peer& peer, const wire::Withdraw& withdraw) noexcept {
  const Envelope envelope{withdraw.context, withdraw.source, withdraw.tag};
  Message* const message = matcher_.find_sent(envelope, peer, withdraw.send_id);
  if (message == nullptr) return;
  matcher_.remove(*message);
  count_match(peer, envelope);
  free_message(*message);
  wire::Withdraw answer = withdraw;
  answer.kind = wire::Kind::withdrawn;
  post_control(peer, &answer, sizeof answer);
}

void Engine::on_withdrawn(const wire::Withdraw& withdrawn) noexcept {
  SendRequest* const send = send_ids_.find(withdrawn.send_id);
  if (send == nullptr) return;
  stop_waiting(*send);
  send->status.cancelled = true;
  finish_send(*send, MPI_SUCCESS);
}

} // namespace macadam::engine
