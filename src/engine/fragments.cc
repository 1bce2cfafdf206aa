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
                               std::size_t rest) noexcept {
  Peer* const peer = known(source);
  if (peer == nullptr) return;
  Peer& from = *peer;
  const bool synchronous = static_cast<wire::Kind>(fragment[0]) == wire::Kind::eager_synchronous;
  const EagerView view = view_eager(fragment, bytes, synchronous);
  const std::size_t all = view.bytes + rest;
  if (ReceiveRequest* receive = matcher_.take_receive(view.envelope)) {
    bind(*receive, from, view.envelope);
    note(Step::Kind::matched, from, view.envelope, all, Protocol::eager,
         last_ordinal(from, view.envelope));
    if (synchronous) acknowledge(from, view.send_id);
    receive_fragments(from, *receive, all);
  } else {
    Message* const kept = keep_data(from, view, all);
    note(Step::Kind::kept, from, view.envelope, all);
    if (kept == nullptr) return;
    from.arriving = {.message = kept, .lost = kept->lost, .bytes = all};
  }
  add_fragment(from, view.data, view.bytes);
}

void Engine::on_next_fragment(Rank source, const std::byte* fragment, std::size_t bytes) noexcept {
  if (Peer* const from = known(source)) add_fragment(*from, fragment, bytes);
}

// The receive, matched and in no queue, gets the fragments of a message of `bytes` from now on.
void Engine::receive_fragments(Peer& peer, ReceiveRequest& receive, std::size_t bytes) noexcept {
  receive.peer = &peer;
  receive.incoming = bytes;
  receive.stage = ReceiveStage::awaits_fin;
  receiving_.push_back(receive);
  peer.arriving = {.receive = &receive, .lost = !has_destination(receive), .bytes = bytes};
}

// A receive is matched with a message of which only the first fragments were kept.
void Engine::take_arriving(ReceiveRequest& receive, Message& message) noexcept {
  Peer& peer = *message.peer;
  const std::size_t arrived = peer.arriving.arrived;
  if (peer.state == PeerState::failed) return finish_receive(receive, 0, error_of_end());
  receive_fragments(peer, receive, message.bytes);
  peer.arriving.lost = peer.arriving.lost || message.lost;
  add_fragment(peer, message.data, arrived);
}

void Engine::add_fragment(Peer& peer, const std::byte* fragment, std::size_t bytes) noexcept {
  Arriving& arriving = peer.arriving;
  if (arriving.receive == nullptr && arriving.message == nullptr) return; // its peer has failed
  std::byte* const to =
      arriving.receive != nullptr ? destination(*arriving.receive) : arriving.message->data;
  const std::size_t room =
      arriving.receive != nullptr ? arriving.receive->capacity : arriving.bytes;
  if (arriving.arrived < room && !arriving.lost) {
    base::copy(to + arriving.arrived, fragment, std::min(bytes, room - arriving.arrived));
  }
  arriving.arrived += bytes;
  if (arriving.arrived < arriving.bytes) return;
  const Arriving whole = std::exchange(arriving, {});
  if (whole.receive != nullptr)
    finish_receive(*whole.receive, whole.bytes, whole.lost ? MPI_ERR_NO_MEM : MPI_SUCCESS);
}

} // namespace macadam::engine
