// SPDX-License-Identifier: BSD-3-Clause
// What an observer is told of the messages of this process.
#include "engine/engine.h"

namespace macadam::engine {
namespace {

std::uint64_t operation_of(const Request& request) {
  return reinterpret_cast<std::uintptr_t>(&request);
}

} // namespace

void Engine::observe_short(bool all) {
  observes_short_ = all;
  short_kind_ = all ? wire::Kind{0} : wire::Kind::eager;
  peers_.for_each([this](Peer& peer) { update_short_limit(peer); });
}

void Engine::tell(Step::Kind kind, const SendRequest& send, Protocol protocol) noexcept {
  const Envelope& envelope = send.envelope;
  const bool counts = send.peer->channels.find(envelope.context, envelope.tag) != nullptr;
  const bool is_eager = kind == Step::Kind::sent && protocol == Protocol::eager;
  observer_->on_step({.kind = kind,
                      .protocol = protocol,
                      .peer = send.peer->rank,
                      .context = envelope.context,
                      .tag = envelope.tag,
                      .bytes = send.bytes,
                      .ordinal = counts ? send.ordinal : Step::uncounted,
                      .operation = is_eager ? 0 : operation_of(send)});
}

void Engine::tell(Step::Kind kind, const ReceiveRequest& receive, const Peer& peer,
                  std::uint64_t bytes, Protocol protocol) noexcept {
  // If any message would do for a receive: the one that has come.
  const bool matched = kind == Step::Kind::matched || kind == Step::Kind::taken;
  const std::int32_t tag =
      receive.status.tag == MPI_ANY_TAG ? receive.envelope.tag : receive.status.tag;
  const Envelope envelope{receive.envelope.context, receive.status.source, tag};
  const bool is_eager = matched && protocol == Protocol::eager;
  observer_->on_step({.kind = kind,
                      .protocol = protocol,
                      .peer = peer.rank,
                      .context = envelope.context,
                      .tag = envelope.tag,
                      .bytes = bytes,
                      .ordinal = matched ? last_ordinal(peer, envelope) : Step::uncounted,
                      .operation = is_eager ? 0 : operation_of(receive)});
}

void Engine::tell_announced(const ReceiveRequest& receive, std::uint64_t ordinal) noexcept {
  observer_->on_step({.kind = Step::Kind::announced,
                      .protocol = Protocol::recv_rndv,
                      .peer = receive.peer->rank,
                      .context = receive.envelope.context,
                      .tag = receive.envelope.tag,
                      .bytes = receive.capacity,
                      .ordinal = ordinal,
                      .operation = operation_of(receive)});
}

// The packet of an EAGER message has been handled: either a receive had waited for it, or it is
// kept.
void Engine::note_eager(const Peer& peer, const std::byte* message, std::size_t bytes,
                        bool expected) noexcept {
  const auto kind = static_cast<wire::Kind>(message[0]);
  const bool synchronous = kind == wire::Kind::eager_synchronous;
  if (kind != wire::Kind::eager && !synchronous) return;
  const EagerView view = view_eager(message, bytes, synchronous);
  note(expected ? Step::Kind::matched : Step::Kind::kept, peer, view.envelope, view.bytes,
       Protocol::eager, expected ? last_ordinal(peer, view.envelope) : Step::uncounted);
}

std::uint64_t Engine::last_ordinal(const Peer& peer, const Envelope& envelope) noexcept {
  const Channel* const channel = peer.channels.find(envelope.context, envelope.tag);
  return channel == nullptr || channel->matched == 0 ? Step::uncounted : channel->matched - 1;
}

} // namespace macadam::engine
