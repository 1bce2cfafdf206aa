// SPDX-License-Identifier: BSD-3-Clause
// The end of a write seen by its last byte (Small & Yuan, section 4.1, "Eliminating the FIN
// messages in common cases"): the receiver tells what the last byte of its buffer is and looks
// whether it changes. The sender leaves FIN out if its message is just as long and ends with
// another byte. Sound only where bytes are placed in order; a setting, for comparison, since a
// notice (put_noticed) does the same without looking. Nothing ends a sleep, so such waits must not
// sleep.
#include "engine/engine.h"

namespace macadam::engine {
namespace {

std::uint8_t last_byte_of(const std::byte* data, std::size_t bytes) {
  return static_cast<std::uint8_t>(*static_cast<const volatile std::byte*>(data + bytes - 1));
}

} // namespace

void Engine::watch(ReceiveRequest& receive, wire::ReceiverReady& ready) {
  if (receive.capacity == 0) return;
  receive.last_byte = last_byte_of(landing(receive), receive.capacity);
  receive.last_byte_changed = false;
  if (base::ListNode<Watched>& node = receive; !node.linked()) watched_.push_back(receive);
  ready.watched = true;
  ready.last_byte = receive.last_byte;
}

void Engine::stop_watching(ReceiveRequest& receive) {
  base::List<ReceiveRequest, Watched>::erase(receive);
}

bool Engine::is_seen_by_last_byte(SendRequest& send, const Announcement& target) {
  return send.bytes == target.capacity && send.bytes != 0 &&
         last_byte_of(flat(send), send.bytes) != target.last_byte;
}

// Messages sent before a write come before its end. So a receive whose byte has changed is complete
// only after a poll that found nothing more.
bool Engine::look_at_last_bytes(bool moved) {
  bool any = false;
  for (auto at = watched_.begin(); at != watched_.end();) {
    ReceiveRequest& receive = *at;
    ++at;
    if (!receive.last_byte_changed) {
      receive.last_byte_changed =
          last_byte_of(landing(receive), receive.capacity) != receive.last_byte;
      any = any || receive.last_byte_changed;
    } else if (!moved) {
      finish_written(*receive.peer, receive, receive.envelope.source, receive.capacity);
      // Its completion may have started and ended others: the next poll goes on.
      return true;
    }
  }
  return any;
}

} // namespace macadam::engine
