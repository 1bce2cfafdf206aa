// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/request.h"
#include "engine/wire.h"

#include <cstddef>
#include <cstring>

namespace macadam::engine {

namespace wire {

inline Eager eager_header(const Envelope& envelope, Kind kind) {
  return {.kind = kind,
          .tag = envelope.tag,
          .source = envelope.source,
          .context_low = static_cast<std::uint32_t>(envelope.context),
          .context_high = static_cast<std::uint32_t>(envelope.context >> 32)};
}

} // namespace wire

// An EAGER message as it lies in the transport's memory. Read field by field: a copy of the whole
// header would be stored in other widths than it is read in, and the processor would wait for the
// stores.
struct EagerView {
  Envelope envelope;
  const std::byte* data;     // the payload
  std::size_t bytes;         // of it that are there
  std::uint64_t send_id = 0; // to acknowledge, if the send is synchronous
};

inline EagerView view_eager(const std::byte* message, std::size_t bytes, bool synchronous) {
  const auto load = [message](auto& field, std::size_t offset) {
    std::memcpy(&field, message + offset, sizeof field);
  };
  EagerView view;
  load(view.envelope.context, offsetof(wire::Eager, context_low));
  load(view.envelope.source, offsetof(wire::Eager, source));
  load(view.envelope.tag, offsetof(wire::Eager, tag));
  if (synchronous) load(view.send_id, offsetof(wire::EagerSynchronous, send_id_low));
  const std::size_t header = synchronous ? sizeof(wire::EagerSynchronous) : sizeof(wire::Eager);
  view.data = message + header;
  view.bytes = bytes - header;
  return view;
}

} // namespace macadam::engine
