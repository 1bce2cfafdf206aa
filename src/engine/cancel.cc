// SPDX-License-Identifier: BSD-3-Clause
// A pending receive is taken back. If it, or one behind it on its channel, has been announced, the
// sender is asked first (RETRACT): it may have used the announcement already, and the ordinals of
// the ones behind change. The sender answers after everything it sent before, so when the answer
// "not used" comes and the receive is still pending, no message for it exists.
#include "engine/engine.h"

namespace macadam::engine {

void Engine::cancel(ReceiveRequest& receive) {
  if (receive.complete || receive.stage != ReceiveStage::posted || receive.cancelling) return;
  Channel* const counting = receive.channel;
  if (counting == nullptr) return cancel_pending(receive);
  receive.cancelling = true;
  continue_cancel(*receive.peer, *counting);
}

// Takes it out of the queue and completes it as cancelled.
void Engine::cancel_pending(ReceiveRequest& receive) {
  matcher_.remove(receive);
  if (receive.channel != nullptr) --receive.channel->pending;
  base::List<ReceiveRequest, Held>::erase(receive);
  receiving_.push_back(receive);
  receive.status.cancelled = true;
  finish_receive(receive, 0, MPI_SUCCESS);
  if (!held_.empty()) announce_held();
}

// Cancels what can be cancelled on this channel now; asks the sender where it must be asked.
void Engine::continue_cancel(Peer& peer, Channel& counting) {
  if (counting.retracting) return; // one question at a time: goes on with the answer
  for (;;) {
    ReceiveRequest* first = nullptr;
    bool announced = false;
    std::uint64_t ordinal = counting.matched;
    const Envelope* envelope = nullptr;
    for_each_pending(counting, [&](ReceiveRequest& receive) {
      if (first == nullptr && receive.cancelling) {
        first = &receive;
        envelope = &receive.envelope;
      }
      if (first == nullptr) {
        ++ordinal;
      } else {
        announced = announced || receive.announced;
      }
    });
    if (first == nullptr) return;
    if (!announced) {
      cancel_pending(*first);
      continue;
    }
    counting.retracting = true;
    ++counters_.retractions;
    const wire::Retract retract{.kind = wire::Kind::retract,
                                .tag = envelope->tag,
                                .context = envelope->context,
                                .ordinal = ordinal,
                                .receive_id = first->id};
    return post_control(peer, &retract, sizeof retract);
  }
}

// Sender: forget the announcements from this ordinal on, if its message has not been sent.
void Engine::on_retract(Peer& peer, const wire::Retract& retract) {
  wire::Retract answer = retract;
  answer.kind = wire::Kind::retracted;
  answer.used = false;
  // No channel: nothing was sent on it, or its communicator is freed here and what was sent has
  // come before this answer.
  if (Channel* counting = peer.channels.find(retract.context, retract.tag)) {
    answer.used = counting->sent > retract.ordinal;
    if (!answer.used) {
      std::erase_if(counting->announcements,
                    [&](const Announcement& a) { return a.ordinal >= retract.ordinal; });
    }
  }
  post_control(peer, &answer, sizeof answer);
}

void Engine::on_retracted(Peer& peer, const wire::Retract& retracted) {
  Channel* const counting = peer.channels.find(retracted.context, retracted.tag);
  if (counting == nullptr || !counting->retracting) return;
  counting->retracting = false;
  if (!retracted.used) {
    // Announcements from this ordinal on are forgotten: those receives announce themselves anew.
    std::uint64_t ordinal = counting->matched;
    for_each_pending(*counting, [&](ReceiveRequest& receive) {
      if (ordinal++ < retracted.ordinal || !receive.announced) return;
      receive.announced = false;
      stop_watching(receive);
      receive_ids_.remove(receive.id);
      receive.id = 0;
      if (!receive.cancelling) held_.push_back(receive);
    });
  }
  continue_cancel(peer, *counting);
  announce_held();
}

} // namespace macadam::engine
