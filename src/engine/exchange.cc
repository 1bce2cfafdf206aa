// SPDX-License-Identifier: BSD-3-Clause
// Exchanges and nonblocking sends where the processor that posts a put or get copies, as in shared
// memory. In the read form the later side would copy both what it sends (into announced receives)
// and what it receives, while the earlier one waits; in the write form it would wait for an earlier
// one that computes; and a side that copies before it waits does alone what two do faster. So it is
// left open who moves the data: the sender offers them with a permit, the receiver answers with its
// buffer or has announced it, and the permit goes to the side that is in the library and has
// nothing else to do first: the sender writes, or the receiver reads. Of two that wait the sender
// writes.
#include "base/try_push.h"
#include "engine/engine.h"

#include <algorithm>
#include <utility>

namespace macadam::engine {

// Whether it is left open who moves the data of a send.
bool Engine::is_shared(const SendRequest& send) const noexcept {
  return (send.mode == SendMode::exchange || send.mode == SendMode::nonblocking) &&
         send.peer->transport->limits().copies &&
         settings_.protocols == base::Protocols::customized;
}

// A receive that has answered such an offer reads when nothing else is to be done.
void Engine::await_idle(ReceiveRequest& receive, const Message& message) noexcept {
  if (!base::try_push(unread_, &receive)) return; // then the sender writes
  copies_ = true;
  receive.readable = message.memory;
  receive.sender_permit = message.permit;
}

// The youngest: the sender begins with the oldest answer. False if the senders are faster, or are
// left to, as they wait.
bool Engine::read_unread(bool leaves_to_sender) noexcept {
  const auto next =
      std::find_if(unread_.rbegin(), unread_.rend(), [&](const ReceiveRequest* receive) {
        return !leaves_to_sender || !receive->peer->transport->waits(*receive->peer->link);
      });
  if (next == unread_.rend()) return false;
  ReceiveRequest& receive = **next;
  unread_.erase(std::next(next).base());
  Peer& peer = *receive.peer;
  // The sender may come upon an announcement later. If it has used it, its permit decides.
  if (receive.permit != 0 && peer.transport->revoke(*peer.link, receive.permit) == Revoked::yes)
    peer.transport->discard(*peer.link, std::exchange(receive.permit, 0));
  if (!peer.transport->use(*peer.link, std::exchange(receive.sender_permit, 0))) return false;
  receive.stage = ReceiveStage::reading;
  const std::size_t fits = std::min<std::size_t>(receive.incoming, receive.capacity);
  if (fits == 0)
    finish_reading(receive, MPI_SUCCESS);
  else
    read_alone(peer, receive, receive.readable, fits);
  return true;
}

// The receive of such a send has announced itself. The receiver is told, so that no later message
// comes before this one, and so that it may read.
void Engine::offer_announced(SendRequest& send, const Announcement& target) noexcept {
  Peer& peer = *send.peer;
  send.is_registered = peer.transport->why_not_direct(*peer.link) == nullptr &&
                       try_register(peer, flat(send), send.bytes, send.registered);
  if (send.is_registered) send.permit = peer.transport->issue(*peer.link);
  if (send.permit == 0) return write_to(send, target);
  const wire::SenderReady ready = ready_of(send, wire::Offer::either);
  post_control(peer, &ready, sizeof ready);
  write_when_idle(send, target);
}

void Engine::write_when_idle(SendRequest& send, const Announcement& target) noexcept {
  send.stage = SendStage::unwritten;
  copies_ = true;
  if (!base::try_push(unwritten_, {&send, target}) && take_permit_back(send))
    write_to(send, target);
}

// The oldest. False if there is none, or its receiver reads.
bool Engine::write_unwritten() noexcept {
  if (unwritten_.empty()) return false;
  const Unwritten next = unwritten_.front();
  unwritten_.erase(unwritten_.begin()); // few: there are no more than permits
  if (!take_permit_back(*next.send)) return false;
  write_to(*next.send, next.target);
  return true;
}

bool Engine::find_copies() noexcept {
  copies_ = partitioned_.any_offered() || !unread_.empty() || !unwritten_.empty();
  return copies_ && !stands_;
}

bool Engine::copy_when_idle(bool leaves_to_sender) noexcept {
  const Progressing guard(*this);
  const bool moved = write_unwritten() || partitioned_.move_offered(leaves_to_sender) ||
                     read_unread(leaves_to_sender);
  moves_ += moved ? 1 : 0;
  return moved;
}

bool Engine::copy_in_wait(unsigned fruitless) noexcept {
  // A microsecond, in which a sender that comes to its wait begins to write; and so long that one
  // that waits must have lost its core.
  constexpr unsigned looks_before_reading = 16, looks_for_sender = 1024;
  if (fruitless == 0) networks_.begin_wait();
  const bool reads = unwritten_.empty() && (partitioned_.any_readable() || !unread_.empty());
  return fruitless >= (reads ? looks_before_reading : 1) &&
         copy_when_idle(fruitless < looks_for_sender);
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
