// SPDX-License-Identifier: BSD-3-Clause
// HYBRID: the sender copies a medium message to a buffer of the library, says where it is and
// leaves; the receiver reads it (Small & Yuan, Figure 4). Like EAGER for the sender, but without a
// buffer at the receiver. The reading half is in send_rndv.cc.
#include "datatype/cursor.h"
#include "engine/engine.h"

#include <cstring>

namespace macadam::engine {

// False if there is no memory for the copy: the message then takes SEND_RNDV.
bool Engine::send_hybrid(SendRequest& send) {
  auto* const buffer = static_cast<std::byte*>(transport_.allocate(send.bytes));
  if (buffer == nullptr) return false;
  if (send.gaps) {
    datatype::PackCursor cursor(*send.gaps, send.data.address, send.data.count);
    cursor.pack(buffer, send.bytes);
  } else {
    std::memcpy(buffer, send.data.address, send.bytes);
  }
  send.staged = buffer;
  send.hybrid = true;
  send.detached = true; // for the user the send is complete; the request keeps the buffer
  Peer& peer = *send.peer;

  // Figure 6, Isend (8) and (9): the announcement may have come during the copy.
  Announcement target;
  if (send.counted) {
    progress();
    Channel* const counting = channel(peer, send.envelope.context, send.envelope.tag);
    if (take_announcement(*counting, send.ordinal, target)) {
      ++counters_.receiver_early;
      ++counters_.recv_rndv;
      write_to(send, target);
      return true;
    }
  }
  send.registered = transport_.register_memory(buffer, send.bytes);
  send.is_registered = true;
  send.stage = SendStage::announced;
  ++counters_.hybrid_sent;
  ++counters_.sender_early;
  const wire::SenderReady ready{.offer = wire::Offer::hybrid,
                                .counted = send.counted,
                                .source = send.envelope.source,
                                .tag = send.envelope.tag,
                                .context = send.envelope.context,
                                .bytes = send.bytes,
                                .send_id = send.id,
                                .memory = send.registered};
  post_control(peer, &ready, sizeof ready);
  return true;
}

} // namespace macadam::engine
