// SPDX-License-Identifier: BSD-3-Clause
// What the transport could not take at once waits here, in order, per peer. Transports keep no such
// queues of their own.
#include "base/copy.h"
#include "engine/engine.h"

namespace macadam::engine {

// Null, and the end of all communication, if there is no memory for it: what comes later must not
// overtake it.
Deferred* Engine::defer(Peer& peer, Deferred::Type type) noexcept {
  Deferred* const waiting = deferred_slab_.try_make();
  if (waiting == nullptr) {
    on_failure(base::no_memory("to keep what a peer or the network cannot take now"));
    return nullptr;
  }
  waiting->type = type;
  // A peer whose backlog has just run empty may still be linked: a send finished by flush() was
  // followed by another.
  if (base::ListNode<Backlogged>& node = peer; !node.linked()) backlogged_.push_back(peer);
  aside_ = true;
  peer.backlog.push_back(*waiting);
  if (!peer.holds) ++counters_.backlogged;
  update_short_limit(peer);
  return waiting;
}

namespace {

void set_control(Deferred& waiting, const void* header, std::size_t bytes) {
  waiting.control_bytes = static_cast<std::uint8_t>(bytes);
  base::copy(waiting.control.data(), header, bytes);
}

// In the FIN of a put that could not be done.
void tell_of_lack(Deferred& put) {
  wire::Fin fin;
  base::copy(&fin, put.control.data(), sizeof fin);
  fin.lacks = true;
  set_control(put, &fin, sizeof fin);
}

} // namespace

void Engine::post_control(Peer& peer, const void* header, std::size_t bytes,
                          const std::byte* payload, std::size_t payload_bytes) noexcept {
  if (may_post(peer) &&
      peer.transport->send(*peer.link, header, bytes, payload, payload_bytes) == Posted::done)
    return;
  if (peer.state == PeerState::failed) return;
  Deferred* const waiting = defer(peer, Deferred::Type::control);
  if (waiting == nullptr) return;
  set_control(*waiting, header, bytes);
  waiting->payload = payload;
  waiting->bytes = payload_bytes;
}

// Hands a put to the transport; false if it is busy. A put that is done at once, or cannot be done,
// has finished the send only when its FIN is on the way too, so the caller finishes it.
// `notification` becomes 0 if the put cannot tell its target, which needs FIN then.
bool Engine::try_put(Peer& peer, SendRequest& send, RemoteMemory to, std::size_t bytes,
                     std::uint32_t& notification) noexcept {
  Posted posted = Posted::unnotified;
  if (notification != 0)
    posted = peer.transport->put_notified(*peer.link, flat(send), to, bytes, send.id, notification);
  if (posted == Posted::unnotified) {
    notification = 0;
    posted = peer.transport->put(*peer.link, flat(send), to, bytes, send.id);
  }
  if (posted == Posted::busy) return false;
  if (posted == Posted::refused) {
    notification = 0;
    send.status.error = MPI_ERR_NO_MEM;
  }
  if (notification != 0) ++counters_.notified;
  send.stage = posted == Posted::pending ? SendStage::writing : SendStage::written;
  return true;
}

// False if it is deferred, and `fin`, if there is one, with it.
bool Engine::post_put(Peer& peer, SendRequest& send, RemoteMemory to, std::size_t bytes,
                      std::uint32_t& notification, const wire::Fin* fin) noexcept {
  send.stage = SendStage::writing;
  note(Step::Kind::data, send);
  if (may_post(peer) && try_put(peer, send, to, bytes, notification)) return true;
  Deferred* const waiting = defer(peer, Deferred::Type::put);
  if (waiting == nullptr) return false;
  if (fin != nullptr) set_control(*waiting, fin, sizeof *fin);
  waiting->send = &send;
  waiting->remote = to;
  waiting->notification = notification;
  waiting->bytes = bytes;
  return false;
}

bool Engine::try_get(Peer& peer, ReceiveRequest& receive, RemoteMemory from,
                     std::size_t bytes) noexcept {
  const Posted posted = peer.transport->get(*peer.link, destination(receive), from, bytes,
                                            receive.id | receive_cookie);
  if (posted == Posted::busy) return false;
  if (posted == Posted::done) finish_reading(receive, MPI_SUCCESS);
  if (posted == Posted::refused) finish_reading(receive, MPI_ERR_NO_MEM);
  return true;
}

void Engine::post_get(Peer& peer, ReceiveRequest& receive, RemoteMemory from,
                      std::size_t bytes) noexcept {
  if (may_post(peer) && try_get(peer, receive, from, bytes)) return;
  Deferred* const waiting = defer(peer, Deferred::Type::get);
  if (waiting == nullptr) return;
  waiting->receive = &receive;
  waiting->remote = from;
  waiting->bytes = bytes;
}

bool Engine::flush_backlogs() noexcept {
  bool moved = false;
  for (auto at = backlogged_.begin(); at != backlogged_.end();) {
    Peer& peer = *at;
    ++at;
    moved = flush(peer) || moved;
  }
  return moved;
}

bool Engine::flush(Peer& peer) noexcept {
  const bool moved = post_backlog(peer);
  if (peer.backlog.empty()) {
    base::ListNode<Backlogged>& node = peer;
    node.unlink();
    update_short_limit(peer);
  }
  return moved;
}

// Sends what waits for this peer until the transport is busy again.
bool Engine::post_backlog(Peer& peer) noexcept {
  bool moved = false;
  if (peer.holds) end_hold(peer);
  while (peer.state == PeerState::connected && !peer.backlog.empty()) {
    Deferred& front = peer.backlog.front();
    SendRequest* finished = nullptr;
    switch (front.type) {
    case Deferred::Type::control:
      if (peer.transport->send(*peer.link, front.control.data(), front.control_bytes, front.payload,
                               front.bytes) == Posted::busy) {
        return moved;
      }
      break;
    case Deferred::Type::eager: {
      if (peer.throttled && front.send->bytes != 0) { // meanwhile: offered in its place
        // Uncounted: an announcement for it may have been dropped while it was to go eagerly.
        front.send->counted = false;
        const wire::SenderReady ready = offer(*front.send);
        set_control(front, &ready, sizeof ready);
        front.type = Deferred::Type::control;
        continue;
      }
      if (flush_bundle(peer)) {
        moved = true;
        continue;
      }
      const Posted posted = transmit_eager(*front.send);
      if (posted == Posted::busy) return moved;
      if (posted == Posted::done && front.send->mode != SendMode::synchronous)
        finished = front.send;
      break;
    }
    case Deferred::Type::put:
      if (!try_put(peer, *front.send, front.remote, front.bytes, front.notification)) return moved;
      if (front.send->stage == SendStage::written) finished = front.send;
      if (front.notification == 0 && front.control_bytes != 0) { // FIN takes its place
        if (front.send->status.error != MPI_SUCCESS) tell_of_lack(front);
        front.type = Deferred::Type::control;
        front.bytes = 0;
        moved = true;
        if (finished != nullptr) finish_send(*finished, finished->status.error);
        continue;
      }
      break;
    case Deferred::Type::get:
      if (!try_get(peer, *front.receive, front.remote, front.bytes)) return moved;
      break;
    }
    base::List<Deferred>::erase(front);
    deferred_slab_.free(&front);
    moved = true;
    if (finished != nullptr) finish_send(*finished, finished->status.error);
  }
  return moved;
}

} // namespace macadam::engine
