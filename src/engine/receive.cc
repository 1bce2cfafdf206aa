// SPDX-License-Identifier: BSD-3-Clause
// The receiving half that all protocols share: posting, matching, the user's memory, completion.
// Irecv of Figure 6 (Small & Yuan).
#include "base/error.h"
#include "datatype/cursor.h"
#include "engine/engine.h"
#include "engine/mutant.h"

#include <algorithm>

namespace macadam::engine {

ReceiveRequest* Engine::receive_long(Peer* peer, Envelope envelope, Data data) {
  const std::size_t bytes = data.bytes();
  const bool could_announce = peer != nullptr && envelope.tag != MPI_ANY_TAG &&
                              bytes > peer->eager &&
                              settings_.protocols == base::Protocols::customized;
  // Figure 6, Irecv (3): a SENDER_READY that has arrived makes an announcement needless.
  if (could_announce) deliver();

  ReceiveRequest& receive = make_receive(envelope, data, bytes);
  receive.peer = peer;
  if (Message* message = matcher_.find_unexpected(envelope)) {
    matcher_.remove(*message);
    bind(receive, *message->peer, message->envelope);
    if (message->rendezvous || observes_short_) [[unlikely]]
      note(Step::Kind::taken, receive, *message->peer, message->bytes, protocol_of(*message));
    take(receive, *message);
    return &receive;
  }
  if (failure_.noted() || (peer != nullptr && peer->state == PeerState::failed)) [[unlikely]] {
    finish_receive(receive, 0, error_of_end());
    return &receive;
  }
  matcher_.post(receive, envelope);
  if (peer == nullptr || envelope.tag == MPI_ANY_TAG) return &receive;
  const Channel* const counting = count_pending(receive, *peer, envelope);
  if (counting != nullptr && could_announce) {
    if (may_announce(receive)) {
      announce(receive, counting->matched + counting->pending - 1);
    } else {
      held_.push_back(receive);
    }
  }
  return &receive;
}

Message* Engine::match_probe(const Envelope& wanted) {
  Message* const message = matcher_.find_unexpected(wanted);
  if (message == nullptr) return nullptr;
  matcher_.remove(*message);
  // It is matched from here on: receives posted later are for later messages.
  if (!is_mutant(Mutant::probe_without_ordinal)) count_match(*message->peer, message->envelope);
  if (message->rendezvous) probed_.push_back(*message);
  if (message->rendezvous || observes_short_) [[unlikely]]
    note(Step::Kind::taken, *message->peer, message->envelope, message->bytes,
         protocol_of(*message), last_ordinal(*message->peer, message->envelope));
  return message;
}

ReceiveRequest* Engine::receive_matched(Message& message, const Data& data) {
  ReceiveRequest& receive = make_receive(message.envelope, data, data.bytes());
  receive.peer = message.peer;
  receive.status.source = message.envelope.source;
  receive.status.tag = message.envelope.tag;
  take(receive, message);
  return &receive;
}

// A receive gets a message that was kept.
void Engine::take(ReceiveRequest& receive, Message& message) noexcept {
  if (message.rendezvous) {
    accept(receive, message);
  } else {
    if (message.send_id != 0) acknowledge(*message.peer, message.send_id);
    if (message.peer->arriving.message == &message) [[unlikely]]
      take_arriving(receive, message);
    else if (message.lost) [[unlikely]]
      finish_receive(receive, message.bytes, MPI_ERR_NO_MEM);
    else
      deliver(receive, message.data, message.bytes);
  }
  free_message(message);
}

void Engine::count_match(Peer& peer, Envelope envelope) noexcept {
  if (Channel* counting = channel(peer, envelope.context, envelope.tag)) ++counting->matched;
}

// The ordinal of the message that a pending receive is for: those matched and those before it.
std::uint64_t Engine::ordinal_of(const ReceiveRequest& receive) const {
  std::uint64_t ordinal = receive.channel->matched;
  for_each_pending(*receive.channel, [&](const ReceiveRequest& other) {
    if (other.sequence < receive.sequence) ++ordinal;
  });
  return ordinal;
}

// False if there is no memory to unpack from.
bool Engine::has_destination(ReceiveRequest& receive) noexcept {
  if (receive.noncontiguous && receive.bounce == nullptr)
    receive.bounce = buffers_.try_take(receive.capacity);
  return !receive.noncontiguous || receive.bounce != nullptr;
}

// False if that cannot be had.
bool Engine::register_destination(ReceiveRequest& receive) noexcept {
  if (!receive.is_registered && receive.capacity != 0) {
    receive.is_registered =
        try_register(*receive.peer, destination(receive), receive.capacity, receive.registered);
    return receive.is_registered;
  }
  return true;
}

// `bytes` is the size of the message; the data that fit are in place (or in the bounce buffer).
void Engine::finish_receive(ReceiveRequest& receive, std::uint64_t bytes,
                            std::int32_t error) noexcept {
  if (receive.announced || receive.sender_id != 0)
    note(Step::Kind::finished, receive, *receive.peer, bytes);
  base::List<ReceiveRequest, InFlight>::erase(receive);
  stop_watching(receive);
  if (receive.sender_permit != 0) std::erase(unread_, &receive);
  if (receive.id != 0) receive_ids_.remove(receive.id);
  if (receive.permit != 0) receive.peer->transport->discard(*receive.peer->link, receive.permit);
  if (receive.offered != nullptr) free_message(*receive.offered);
  if (receive.is_registered) receive.peer->transport->release_cached(receive.registered);
  if (receive.bounce != nullptr) {
    const bool unpacked =
        datatype::unpack(*receive.noncontiguous, receive.data.address, receive.data.count,
                         receive.bounce, std::min<std::size_t>(bytes, receive.capacity));
    if (!unpacked && error == MPI_SUCCESS) error = MPI_ERR_NO_MEM;
    buffers_.give(receive.bounce, receive.capacity);
    receive.bounce = nullptr;
  }
  receive.status.bytes = std::min<std::uint64_t>(bytes, receive.capacity);
  receive.status.error = error;
  if ((bytes > receive.capacity || !whole(receive, bytes)) && error == MPI_SUCCESS) [[unlikely]] {
    receive.status.error = MPI_ERR_TRUNCATE;
    receive.incoming = bytes; // for the message of the error
  }
  receive.stage = ReceiveStage::awaits_fin; // no longer posted: too late to cancel
  complete(receive);
}

// Null, and the end of all communication, if there is no memory for it. What comes in the same poll
// behind one that was lost is not kept, or a receive would take it for that one.
Message* Engine::keep_unexpected(Peer& peer, const Envelope& envelope, std::size_t bytes) noexcept {
  if (failure_.noted()) [[unlikely]]
    return nullptr;
  Message* const message = message_slab_.try_make();
  if (message == nullptr) {
    on_failure(base::no_memory("for the record of a message that came before its receive"));
    return nullptr;
  }
  message->peer = &peer;
  message->envelope = envelope;
  message->bytes = bytes;
  matcher_.add_unexpected(*message);
  ++counters_.unexpected;
  return message;
}

void Engine::free_message(Message& message) noexcept {
  if (message.data != nullptr) {
    buffers_.give(message.data, message.bytes);
    unexpected_bytes_ -= room(message);
    if (throttled_ != 0 &&
        unexpected_bytes_ < static_cast<std::size_t>(settings_.unexpected_limit) / 2) {
      peers_.for_each([&](Peer& peer) { throttle(peer, false); });
    }
  }
  base::List<Message, ByArrival>::erase(message); // from those probed
  message.kind = base::ObjectKind::freed;
  message_slab_.free(&message);
}

} // namespace macadam::engine
