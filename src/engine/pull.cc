// SPDX-License-Identifier: BSD-3-Clause
// Where no more memory can be registered, a program goes on, slower. A receive that cannot register
// its memory does not announce itself, and a send that cannot register its own is offered in the
// write form. If both can't, the receiver asks for the data fragment by fragment and they come as
// messages.
#include "base/copy.h"
#include "base/error.h"
#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace macadam::engine {

// Registers memory for the peer; false if no more can be registered.
bool Engine::try_register(Peer& peer, const std::byte* memory, std::size_t bytes,
                          RemoteMemory& registered) noexcept {
  try {
    registered = peer.transport->register_cached(const_cast<std::byte*>(memory), bytes);
    return true;
  } catch (const base::Error&) {
  } catch (const std::bad_alloc&) {
  }
  ++counters_.unregistered;
  return false;
}

// Asks for the next fragment; one at a time, so that it needs no room here.
void Engine::pull(ReceiveRequest& receive) noexcept {
  const wire::Pull pull{
      .send_id = receive.sender_id, .receive_id = receive.id, .offset = receive.pulled};
  post_control(*receive.peer, &pull, sizeof pull);
}

void Engine::on_pull(Peer& peer, const wire::Pull& pull) noexcept {
  SendRequest* const send = send_ids_.find(pull.send_id);
  if (send == nullptr || send->stage != SendStage::announced || pull.offset >= send->bytes) return;
  stop_waiting(*send);
  const wire::Fragment fragment{.receive_id = pull.receive_id};
  const std::size_t most = peer.transport->limits().message - sizeof fragment;
  post_control(peer, &fragment, sizeof fragment, flat(*send) + pull.offset,
               std::min(most, send->bytes - pull.offset));
}

void Engine::on_fragment(const std::byte* packet, std::size_t bytes) noexcept {
  wire::Fragment fragment;
  std::memcpy(&fragment, packet, sizeof fragment);
  ReceiveRequest* const receive = receive_ids_.find(fragment.receive_id);
  if (receive == nullptr || receive->stage != ReceiveStage::reading) return;
  const std::size_t fits = std::min<std::size_t>(receive->incoming, receive->capacity);
  const std::size_t more = std::min(bytes - sizeof fragment, fits - receive->pulled);
  base::copy(destination(*receive) + receive->pulled, packet + sizeof fragment, more);
  receive->pulled += more;
  if (receive->pulled < fits) return pull(*receive);
  finish_reading(*receive, MPI_SUCCESS);
}

} // namespace macadam::engine
