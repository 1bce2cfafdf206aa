// SPDX-License-Identifier: BSD-3-Clause
// Exchanges where the processor that posts a put or get copies, as in shared memory. In the read
// form the later side would copy both what it sends (into announced receives) and what it receives,
// while the earlier one waits; in the write form it would wait for an earlier one that computes. So
// the sender offers its data with a permit, the receiver answers with its buffer, and the permit
// goes to the side that is in the library and has nothing else to do first: the sender writes, or
// the receiver reads.
#include "base/try_push.h"
#include "engine/engine.h"

#include <utility>

namespace macadam::engine {

void Engine::issue_in_exchange(SendRequest& send) noexcept {
  Transport& transport = *send.peer->transport;
  if (send.mode != SendMode::exchange || !transport.limits().copies ||
      settings_.protocols != base::Protocols::customized)
    return;
  send.permit = transport.issue(*send.peer->link); // 0: there are too many, the receiver reads
}

// A receive that has answered such an offer reads when nothing else is to be done.
void Engine::await_idle(ReceiveRequest& receive, const Message& message) noexcept {
  if (!base::try_push(unread_, &receive)) return; // then the sender writes
  receive.readable = message.memory;
  receive.sender_permit = message.permit;
}

// The youngest: the sender begins with the oldest answer. False if it was faster.
bool Engine::read_unread() noexcept {
  ReceiveRequest& receive = *unread_.back();
  unread_.pop_back();
  Peer& peer = *receive.peer;
  if (!peer.transport->use(*peer.link, std::exchange(receive.sender_permit, 0))) return false;
  receive.stage = ReceiveStage::reading;
  const std::size_t fits = std::min<std::size_t>(receive.incoming, receive.capacity);
  if (fits == 0)
    finish_reading(receive, MPI_SUCCESS);
  else
    read_alone(peer, receive, receive.readable, fits);
  return true;
}

bool Engine::copy_when_idle() noexcept {
  const Progressing guard(*this);
  const bool moved = partitioned_.any_offered() ? partitioned_.move_offered() : read_unread();
  moves_ += moved ? 1 : 0;
  return moved;
}

bool Engine::copy_in_wait(unsigned fruitless) noexcept {
  // A microsecond, in which a sender that comes to its wait begins to write.
  constexpr unsigned looks_before_reading = 16;
  if (fruitless == 0) networks_.begin_wait();
  return fruitless >= (partitioned_.any_readable() ? looks_before_reading : 1) && copy_when_idle();
}

// False if the receiver reads: FIN will come.
bool Engine::take_permit_back(SendRequest& send) noexcept {
  if (send.permit == 0) return true;
  Transport& transport = *send.peer->transport;
  if (transport.revoke(*send.peer->link, send.permit) != Revoked::yes) {
    send.stage = SendStage::awaits_ack;
    return false;
  }
  transport.discard(*send.peer->link, std::exchange(send.permit, 0));
  return true;
}

// Without the sender, which may have copies of its own to make, if the network can.
void Engine::read_alone(Peer& peer, ReceiveRequest& receive, RemoteMemory from,
                        std::size_t bytes) noexcept {
  Transport& transport = *peer.transport;
  Posted posted = Posted::busy;
  note(Step::Kind::data, receive, peer, bytes);
  if (peer.state == PeerState::connected && transport.why_not_direct(*peer.link) == nullptr)
    posted =
        transport.read(*peer.link, destination(receive), from, bytes, receive.id | receive_cookie);
  if (posted == Posted::done) finish_reading(receive, MPI_SUCCESS);
  if (posted == Posted::busy || posted == Posted::refused) post_get(peer, receive, from, bytes);
}

} // namespace macadam::engine
