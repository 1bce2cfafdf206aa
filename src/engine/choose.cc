// SPDX-License-Identifier: BSD-3-Clause
// The choice of the protocol: Table 1 and the Isend of Figure 6 (Small & Yuan 2009). Only the
// sender decides, by the size of the message and by whether the receiver's announcement is there.
#include "base/error.h"
#include "engine/engine.h"

#include <new>

namespace macadam::engine {

SendRequest* Engine::send_long(Peer& peer, Envelope envelope, Data data, std::size_t bytes,
                               SendMode mode) {
  const bool customized = settings_.protocols == base::Protocols::customized;
  const bool fits_eager = bytes <= peer.transport->eager_to(*peer.link);
  // Only now it is known that the short path is open.
  if (bytes > peer.always_eager && fits_eager && peer.short_limit >= 0 &&
      mode != SendMode::synchronous && data.type->contiguous() &&
      send_short(peer, envelope, data.address, bytes))
    return nullptr;
  // All progress is made before this message takes its ordinal: others may be sent meanwhile.
  // Figure 6, Isend (4) and (12): an announcement may have arrived; or there may be room again.
  if (!fits_eager || peer.throttled || !peer.backlog.empty()) deliver();
  bool eager = fits_eager && (!peer.throttled || bytes == 0);
  std::byte* copy = nullptr;
  if (!eager && customized && bytes <= peer.hybrid && mode == SendMode::standard &&
      !is_announced(peer, envelope)) {
    copy = copy_for_hybrid(peer, envelope, data, bytes);
    // Without memory EAGER would have been second best; its sender waits for nobody.
    if (copy == nullptr && !is_announced(peer, envelope))
      eager = bytes <= peer.transport->limits().eager && !peer.throttled;
  }
  if (peer.state == PeerState::failed) {
    if (copy != nullptr) peer.transport->free(copy);
    if (failure_.noted()) throw failure_.what();
    base::fail(MPI_ERR_PROC_ABORTED, "rank {} of the job is gone; nothing can be sent to it",
               peer.rank);
  }

  // All that may fail comes before the message takes its place.
  const bool packs = copy == nullptr && bytes != 0 && !data.type->contiguous();
  std::byte* const packed = packs ? pack(data, bytes) : copy;
  SendRequest* const made = try_make_send();
  if (made == nullptr) {
    if (packs) buffers_.give(packed, bytes);
    if (copy != nullptr) peer.transport->free(copy);
    throw std::bad_alloc();
  }
  SendRequest& send = *made;
  send.peer = &peer;
  send.envelope = envelope;
  send.data = data;
  send.bytes = bytes;
  send.mode = mode;
  if (!data.type->contiguous()) send.noncontiguous = datatype::TypeRef(*data.type);
  send.bounce = packed;
  send.hybrid = copy != nullptr;
  send.detached = send.hybrid; // for the user it is complete; the request keeps the copy
  sends_.push_back(send);
  counters_.bytes_sent += bytes;

  Channel* const counting = channel(peer, envelope.context, envelope.tag);
  if (counting != nullptr) {
    send.counted = customized && !counting->uncounted;
    send.ordinal = counting->sent++;
  }
  if (eager) return send_eager(send);

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
    write_to(send, target);
    if (copy != nullptr) return nullptr;
    if (!send.complete) return &send;
    recycle(&send);
    return nullptr;
  }
  if (copy != nullptr) {
    offer_copy(send);
    return nullptr;
  }
  return send_rndv(send);
}

} // namespace macadam::engine
