// SPDX-License-Identifier: BSD-3-Clause
// The choice of the protocol: Table 1 and the Isend of Figure 6 (Small & Yuan 2009). Only the
// sender decides, by the size of the message and by whether the receiver's announcement is there.
#include "base/error.h"
#include "engine/engine.h"

namespace macadam::engine {

SendRequest* Engine::send_long(Peer& peer, Envelope envelope, Data data, std::size_t bytes,
                               SendMode mode) {
  const bool fits_eager = bytes <= peer.eager;
  // All progress is made before this message takes its ordinal: others may be sent meanwhile.
  // Figure 6, Isend (4) and (12): an announcement may have arrived; or there may be room again.
  const bool held = peer.holds && joins(peer, bytes, mode);
  if (!held && (!fits_eager || peer.throttled || !peer.backlog.empty())) deliver();
  SendRequest& send = base::make(send_slab_, send_ids_);
  send.peer = &peer;
  send.envelope = envelope;
  send.data = data;
  send.bytes = bytes;
  send.mode = mode;
  if (!data.type->contiguous()) send.noncontiguous = datatype::TypeRef(*data.type);
  bool eager = false;
  try {
    eager = prepare(send, fits_eager);
  } catch (...) {
    unmake(send);
    throw;
  }
  sends_.push_back(send);
  counters_.bytes_sent += bytes;

  const bool hybrid = send.hybrid;
  Channel* const counting = channel(peer, envelope.context, envelope.tag);
  if (counting != nullptr) {
    send.counted = settings_.protocols == base::Protocols::customized && !counting->uncounted;
    send.ordinal = counting->sent++;
  }
  if (eager) {
    note(Step::Kind::sent, send, Protocol::eager);
    return send_eager(send, held);
  }

  // A message too long for a receive that watches its last byte would look like one that fits: it
  // is offered instead.
  const Announcement* const found =
      send.counted ? find_announcement(peer, *counting, send.ordinal) : nullptr;
  const Announcement target = found != nullptr ? *found : Announcement{};
  if (found != nullptr) counting->announcements.erase(counting->announcements.begin());
  if (found != nullptr && target.watched && bytes > target.capacity) {
    send.counted = false;
  } else if (found != nullptr) {
    ++counters_.receiver_early;
    ++counters_.recv_rndv;
    note(Step::Kind::sent, send, Protocol::recv_rndv);
    if (is_shared(send) && !hybrid)
      offer_announced(send, target);
    else
      write_to(send, target);
    if (hybrid) return nullptr;
    if (!send.complete) return &send;
    recycle(&send);
    return nullptr;
  }
  note(Step::Kind::sent, send, hybrid ? Protocol::hybrid : Protocol::send_rndv);
  if (hybrid) {
    offer_copy(send);
    return nullptr;
  }
  return send_rndv(send);
}

// Decides whether the message goes by EAGER, and makes its data one block, which is HYBRID's copy
// if it may go by that. All that may fail is here: before the message takes its ordinal, and before
// the permit of its receive is used, which could not be cancelled any more.
bool Engine::prepare(SendRequest& send, bool fits_eager) {
  Peer& peer = *send.peer;
  const bool packs = send.bytes != 0 && send.noncontiguous;
  const bool eager = fits_eager && (!peer.throttled || send.bytes == 0);
  if (packs && !eager && has_announcement(peer, send.envelope))
    send.bounce = pack(send.data, send.bytes);
  if (!eager && settings_.protocols == base::Protocols::customized && send.bytes <= peer.hybrid &&
      send.mode != SendMode::synchronous && send.mode != SendMode::exchange &&
      !is_announced(peer, send.envelope)) {
    if (copies_later(send)) send.permit = peer.transport->issue(*peer.link);
    send.may_leave = send.permit != 0;
    if (!send.may_leave) copy_for_hybrid(send);
  }
  if (peer.state == PeerState::failed) {
    if (failure_.noted()) throw failure_.what();
    base::fail(MPI_ERR_PROC_ABORTED, "nothing can be sent to rank {} of the job: {}", peer.rank,
               why_failed(&peer));
  }
  if (packs && send.bounce == nullptr) send.bounce = pack(send.data, send.bytes);
  return eager;
}

// A send that was not begun.
void Engine::unmake(SendRequest& send) noexcept {
  send_ids_.remove(send.id);
  if (send.permit != 0) send.peer->transport->discard(*send.peer->link, send.permit);
  free_bounce(send);
  recycle(&send);
}

} // namespace macadam::engine
