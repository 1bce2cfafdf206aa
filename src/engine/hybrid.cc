// SPDX-License-Identifier: BSD-3-Clause
// HYBRID: the sender copies a medium message to a buffer of the library, says where it is and
// leaves; the receiver reads it (Small & Yuan, Figure 4). Like EAGER for the sender, but without a
// buffer at the receiver. The reading half is in send_rndv.cc.
#include "datatype/cursor.h"
#include "engine/engine.h"

#include <cstring>

namespace macadam::engine {

// The data as one block of the library's memory; null if there is none left: the message then takes
// SEND_RNDV.
std::byte* Engine::copy_for_hybrid(Peer& peer, const Data& data, std::size_t bytes) {
  auto* const copy = static_cast<std::byte*>(peer.transport->allocate(bytes));
  if (copy == nullptr) return nullptr;
  if (data.type->contiguous()) {
    std::memcpy(copy, data.address, bytes);
  } else {
    datatype::PackCursor cursor(*data.type, data.address, data.count);
    cursor.pack(copy, bytes);
  }
  return copy;
}

void Engine::offer_copy(SendRequest& send) {
  send.registered = send.peer->transport->register_memory(send.staged, send.bytes);
  send.is_registered = true;
  send.stage = SendStage::announced;
  ++counters_.hybrid_sent;
  ++counters_.sender_early;
  const wire::SenderReady ready{.offer = wire::Offer::hybrid,
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
