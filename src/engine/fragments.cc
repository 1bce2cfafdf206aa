// SPDX-License-Identifier: BSD-3-Clause
// EAGER messages that the transport delivers in fragments, so that this process copies out what has
// come while the sender still copies in. A message is matched by its first fragment. From then on
// it is like a rendezvous whose data are on the way; one that was not expected is kept and filled.
#include "engine/engine.h"

#include "base/copy.h"

#include <algorithm>
#include <utility>

namespace macadam::engine {

void Engine::on_first_fragment(Rank source, const std::byte* fragment, std::size_t bytes,
                               std::size_t rest) {
  Peer& from = peer(source);
  if (!watched_.empty()) [[unlikely]]
    finish_written_before(from, fragment);
  const bool synchronous = static_cast<wire::Kind>(fragment[0]) == wire::Kind::eager_synchronous;
  const EagerView view = view_eager(fragment, bytes, synchronous);
  const std::size_t all = view.bytes + rest;
  if (ReceiveRequest* receive = matcher_.take_receive(view.envelope)) {
    bind(*receive, from, view.envelope);
    if (synchronous) acknowledge(from, view.send_id);
    receive_fragments(from, *receive, all);
  } else {
    from.arriving = {.message = &keep_data(from, view, all), .bytes = all};
  }
  add_fragment(from, view.data, view.bytes);
}

void Engine::on_next_fragment(Rank source, const std::byte* fragment, std::size_t bytes) {
  add_fragment(peer(source), fragment, bytes);
}

// The receive, matched and in no queue, gets the fragments of a message of `bytes` from now on.
void Engine::receive_fragments(Peer& peer, ReceiveRequest& receive, std::size_t bytes) {
  receive.peer = &peer;
  receive.incoming = bytes;
  receive.stage = ReceiveStage::awaits_fin;
  receiving_.push_back(receive);
  peer.arriving = {.receive = &receive, .bytes = bytes};
}

// A receive is matched with a message of which only the first fragments were kept.
void Engine::take_arriving(ReceiveRequest& receive, Message& message) {
  Peer& peer = *message.peer;
  const std::size_t arrived = peer.arriving.arrived;
  if (peer.state == PeerState::failed) return finish_receive(receive, 0, MPI_ERR_PROC_ABORTED);
  receive_fragments(peer, receive, message.bytes);
  add_fragment(peer, message.data, arrived);
}

void Engine::add_fragment(Peer& peer, const std::byte* fragment, std::size_t bytes) {
  Arriving& arriving = peer.arriving;
  std::byte* const to =
      arriving.receive != nullptr ? destination(*arriving.receive) : arriving.message->data;
  const std::size_t room =
      arriving.receive != nullptr ? arriving.receive->capacity : arriving.bytes;
  if (arriving.arrived < room) {
    base::copy(to + arriving.arrived, fragment, std::min(bytes, room - arriving.arrived));
  }
  arriving.arrived += bytes;
  if (arriving.arrived < arriving.bytes) return;
  const Arriving whole = std::exchange(arriving, {});
  if (whole.receive != nullptr) finish_receive(*whole.receive, whole.bytes, MPI_SUCCESS);
}

} // namespace macadam::engine
