// SPDX-License-Identifier: BSD-3-Clause
// Partitions where the processor that posts a put copies it, as in shared memory. For a receiver
// that computes they are copied ahead, if the network has room for them on the way. Else they are
// offered, and the side that has nothing else to do moves them, with a permit that only one of them
// gets. A receiver that waits reads while the sender computes. Of two that wait the sender writes:
// together they copy faster than side by side.
#include "base/try_push.h"
#include "engine/engine.h"
#include "engine/partitioned.h"

namespace macadam::engine {

// To a receiver that does not wait, and so will not read yet: the data are copied now, out of the
// caches of the thread that has just made them.
bool PartitionedTable::write_ahead(PartitionedSend& whole, SendRequest& send,
                                   std::uint32_t partition) noexcept {
  Peer& peer = *whole.peer;
  Transport& transport = *peer.transport;
  if (whole.first_notification == 0 || transport.waits(*peer.link) ||
      transport.peer_sleeps(*peer.link) || !engine_.may_post(peer))
    return false;
  if (transport.put_at_once(*peer.link, engine_.flat(send), whole.place(partition), send.bytes,
                            whole.first_notification + partition) != Posted::done)
    return false;
  ++engine_.counters_.partitions_ahead;
  ++engine_.counters_.notified;
  send.stage = SendStage::written;
  engine_.note(Step::Kind::data, send);
  engine_.finish_send(send, MPI_SUCCESS);
  return true;
}

// False if the partition is to be written at once: to say that a short one is there costs as much.
bool PartitionedTable::offer(PartitionedSend& whole, SendRequest& send,
                             std::uint32_t partition) noexcept {
  Peer& peer = *whole.peer;
  const Limits& limits = peer.transport->limits();
  if (!limits.copies || send.bytes <= limits.packet / 2) return false;
  if (write_ahead(whole, send, partition)) return true;
  if (peer.transport->why_not_direct(*peer.link) != nullptr) return false; // it could not read
  send.is_registered = engine_.try_register(peer, engine_.flat(send), send.bytes, send.registered);
  if (!send.is_registered) return false;
  send.permit = peer.transport->issue(*peer.link);
  if (send.permit == 0) return false; // there are too many
  if (!base::try_push(offered_, &send)) {
    peer.transport->revoke(*peer.link, send.permit);
    return false;
  }
  engine_.copies_ = true;
  send.stage = SendStage::announced;
  send.ordinal = partition;
  const wire::PartitionOffer offer{.partition = partition,
                                   .receive_id = whole.peer_id,
                                   .send_id = send.id,
                                   .permit = send.permit,
                                   .memory = send.registered};
  engine_.post_control(peer, &offer, sizeof offer);
  return true;
}

// The youngest: the receiver begins with the oldest.
bool PartitionedTable::take_back() noexcept {
  SendRequest& send = *offered_.back();
  offered_.pop_back();
  if (!engine_.take_permit_back(send)) return false; // FIN will come
  write(*static_cast<PartitionedSend*>(send.argument), send,
        static_cast<std::uint32_t>(send.ordinal));
  return true;
}

void PartitionedTable::on_offer(Peer& peer, const wire::PartitionOffer& offer) noexcept {
  (void)base::try_push(readable_, {&peer, offer}); // or else the sender writes
  engine_.copies_ = true;
}

// False if the senders take all of them back, or are left to, as they wait.
bool PartitionedTable::read_oldest(bool leaves_to_sender) noexcept {
  for (auto next = readable_.begin(); next != readable_.end();) {
    const auto [peer, offer] = *next;
    if (leaves_to_sender && peer->transport->waits(*peer->link)) {
      ++next;
      continue;
    }
    next = readable_.erase(next); // few: there are no more than a peer has permits
    PartitionedReceive* const whole = receive_ids_.find(offer.receive_id);
    if (whole == nullptr || !peer->transport->use(*peer->link, offer.permit)) continue;
    read(*whole, offer);
    return true;
  }
  return false;
}

void PartitionedTable::read(PartitionedReceive& whole, const wire::PartitionOffer& offer) noexcept {
  Peer& peer = *whole.peer;
  ReceiveRequest* const made = base::try_make(engine_.receive_slab_, engine_.receive_ids_);
  if (made == nullptr) {
    engine_.acknowledge(peer, offer.send_id);
    whole.error = MPI_ERR_NO_MEM;
    return arrived(whole, offer.partition);
  }
  ReceiveRequest& read = *made;
  read.peer = &peer;
  read.envelope = {whole.envelope.context, whole.envelope.source,
                   static_cast<std::int32_t>(offer.partition)};
  read.data.address = whole.destination() + std::size_t{offer.partition} * whole.sent_bytes;
  read.capacity = read.incoming = whole.sent_bytes;
  read.sender_id = offer.send_id;
  read.stage = ReceiveStage::reading;
  read.continuation = on_read;
  read.argument = &whole;
  engine_.receiving_.push_back(read);
  engine_.read_alone(peer, read, offer.memory, read.capacity);
}

void PartitionedTable::on_read(Request& request, void* argument) noexcept {
  auto& whole = *static_cast<PartitionedReceive*>(argument);
  const std::uint32_t partition =
      static_cast<std::uint32_t>(static_cast<ReceiveRequest&>(request).envelope.tag);
  const std::int32_t error = request.status.error;
  PartitionedTable& table = *whole.table;
  table.engine_.release(&request);
  if (error != MPI_SUCCESS) return; // the peer has failed, and with it the round
  ++table.engine_.counters_.partitions_read;
  table.arrived(whole, partition);
}

} // namespace macadam::engine
