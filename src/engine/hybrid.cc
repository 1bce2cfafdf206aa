// SPDX-License-Identifier: BSD-3-Clause
// HYBRID: the sender copies a medium message to a buffer of the library, says where it is and
// leaves; the receiver reads it (Small & Yuan, Figure 4). Like EAGER for the sender, but without a
// buffer at the receiver. The reading half is in send_rndv.cc.
#include "datatype/cursor.h"
#include "engine/engine.h"

#include <algorithm>

namespace macadam::engine {
namespace {

// Bytes that are copied between two looks for the receiver's announcement.
constexpr std::size_t between_looks = 4 << 10;

} // namespace

// Makes a copy, unless the library has no memory for it or the receiver has announced itself
// meanwhile (Figure 6, Isend (8)): then the rest need not be copied, but where the copy packs.
void Engine::copy_for_hybrid(SendRequest& send) {
  Peer& peer = *send.peer;
  datatype::PackCursor cursor(*send.data.type, send.data.address, send.data.count);
  auto* const copy = static_cast<std::byte*>(peer.transport->allocate(send.bytes));
  if (copy == nullptr) return;
  std::size_t copied = 0;
  while (copied < send.bytes) {
    copied += cursor.pack(copy + copied, std::min(between_looks, send.bytes - copied));
    deliver();
    if (copied < send.bytes && !send.noncontiguous && is_announced(peer, send.envelope))
      return peer.transport->free(copy);
  }
  free_bounce(send);
  send.bounce = copy;
  send.hybrid = true;
  send.detached = true; // for the user it is complete; the request keeps the copy
}

void Engine::offer_copy(SendRequest& send) {
  send.is_registered = try_register(*send.peer, send.bounce, send.bytes, send.registered);
  send.stage = SendStage::announced;
  ++counters_.hybrid_sent;
  ++counters_.sender_early;
  const wire::SenderReady ready{.offer =
                                    send.is_registered ? wire::Offer::hybrid : wire::Offer::write,
                                .counted = send.counted,
                                .source = send.envelope.source,
                                .tag = send.envelope.tag,
                                .ordinal = static_cast<std::uint32_t>(send.ordinal),
                                .context = send.envelope.context,
                                .bytes = send.bytes,
                                .send_id = send.id,
                                .memory = send.registered};
  post_control(*send.peer, &ready, sizeof ready);
}

} // namespace macadam::engine
