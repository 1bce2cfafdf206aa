// SPDX-License-Identifier: BSD-3-Clause
// EAGER messages that the transport delivers in parts, so that this process copies out what has
// come while the sender still copies in. A message is matched by its first part. From then on it is
// like a rendezvous whose data are on the way; one that was not expected is kept and filled.
#include "engine/engine.h"

#include "base/copy.h"

#include <algorithm>
#include <utility>

namespace macadam::engine {

void Engine::on_first_part(Rank source, const std::byte* part, std::size_t bytes,
                           std::size_t rest) {
  Peer& from = peer(source);
  if (!watched_.empty()) [[unlikely]]
    finish_written_before(from, part);
  const bool synchronous = static_cast<wire::Kind>(part[0]) == wire::Kind::eager_synchronous;
  const EagerView view = view_eager(part, bytes, synchronous);
  const std::size_t all = view.bytes + rest;
  if (ReceiveRequest* receive = matcher_.take_receive(view.envelope)) {
    bind(*receive, from, view.envelope);
    if (synchronous) acknowledge(from, view.send_id);
    receive_parts(from, *receive, all);
  } else {
    from.arriving = {.message = &keep_data(from, view, all), .bytes = all};
  }
  add_part(from, view.data, view.bytes);
}

void Engine::on_next_part(Rank source, const std::byte* part, std::size_t bytes) {
  add_part(peer(source), part, bytes);
}

// The receive, matched and in no queue, gets the parts of a message of `bytes` from now on.
void Engine::receive_parts(Peer& peer, ReceiveRequest& receive, std::size_t bytes) {
  receive.peer = &peer;
  receive.incoming = bytes;
  receive.stage = ReceiveStage::awaits_fin;
  receiving_.push_back(receive);
  peer.arriving = {.receive = &receive, .bytes = bytes};
}

// A receive is matched with a message of which only the first parts were kept.
void Engine::take_arriving(ReceiveRequest& receive, Message& message) {
  Peer& peer = *message.peer;
  const std::size_t arrived = peer.arriving.arrived;
  if (peer.state == PeerState::failed) return finish_receive(receive, 0, MPI_ERR_PROC_ABORTED);
  receive_parts(peer, receive, message.bytes);
  add_part(peer, message.data, arrived);
}

void Engine::add_part(Peer& peer, const std::byte* part, std::size_t bytes) {
  Arriving& arriving = peer.arriving;
  std::byte* const to =
      arriving.receive != nullptr ? landing(*arriving.receive) : arriving.message->data;
  const std::size_t room =
      arriving.receive != nullptr ? arriving.receive->capacity : arriving.bytes;
  if (arriving.arrived < room) {
    base::copy(to + arriving.arrived, part, std::min(bytes, room - arriving.arrived));
  }
  arriving.arrived += bytes;
  if (arriving.arrived < arriving.bytes) return;
  const Arriving whole = std::exchange(arriving, {});
  if (whole.receive != nullptr) finish_receive(*whole.receive, whole.bytes, MPI_SUCCESS);
}

} // namespace macadam::engine
