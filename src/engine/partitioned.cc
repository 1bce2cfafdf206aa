// SPDX-License-Identifier: BSD-3-Clause
#include "engine/partitioned.h"

#include "base/copy.h"
#include "base/error.h"
#include "base/try_push.h"
#include "datatype/cursor.h"
#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace macadam::engine {
namespace {

// Bytes that a receive has room for in all its partitions.
std::size_t room_of(const PartitionedReceive& receive) {
  return receive.data.number * receive.data.bytes();
}

} // namespace

PartitionedTable::~PartitionedTable() {
  while (!sends_.empty())
    send_slab_.free(&sends_.pop_front());
  for (auto* const receives : {&unmatched_, &matched_}) {
    while (!receives->empty()) {
      PartitionedReceive& receive = receives->pop_front();
      if (receive.bounce != nullptr) engine_.buffers_.give(receive.bounce, room_of(receive));
      receive_slab_.free(&receive);
    }
  }
}

// ---------------------------------------------------------------- made and taken back

void PartitionedTable::init(Partitioned& made, Peer& peer, const Envelope& envelope,
                            const Partitions& data, Partitioned::Ended ended, void* argument) {
  made.table = this;
  made.peer = &peer;
  made.envelope = envelope;
  made.data = data;
  made.bytes = data.number * data.bytes();
  made.type = datatype::TypeRef(*data.type);
  made.ended = ended;
  made.argument = argument;
}

PartitionedSend& PartitionedTable::make_send(Peer& peer, const Envelope& envelope,
                                             const Partitions& data, Partitioned::Ended ended,
                                             void* argument) {
  const std::size_t words = (std::size_t{data.number} + 63) / 64;
  auto marked = std::make_unique<std::atomic<std::uint64_t>[]>(words);
  std::vector<std::uint64_t> posted(words);
  PartitionedSend& send = base::make(send_slab_, send_ids_);
  sends_.push_back(send);
  init(send, peer, envelope, data, ended, argument);
  send.marked = std::move(marked);
  send.posted = std::move(posted);
  const wire::PartitionedSend offer{.source = envelope.source,
                                    .tag = envelope.tag,
                                    .partitions = data.number,
                                    .context = envelope.context,
                                    .bytes = data.bytes(),
                                    .send_id = send.id,
                                    .note = data.note};
  engine_.post_control(peer, &offer, sizeof offer);
  return send;
}

PartitionedReceive& PartitionedTable::make_receive(Peer& peer, const Envelope& envelope,
                                                   const Partitions& data, Partitioned::Ended ended,
                                                   void* argument) {
  auto missing = std::make_unique<std::atomic<std::uint64_t>[]>(data.number);
  PartitionedReceive& receive = base::make(receive_slab_, receive_ids_);
  unmatched_.push_back(receive);
  init(receive, peer, envelope, data, ended, argument);
  receive.missing = std::move(missing);
  const auto offer = std::ranges::find_if(offers_, [&](const Offer& o) {
    return o.peer == &peer && o.send.context == envelope.context && o.send.tag == envelope.tag;
  });
  if (offer != offers_.end()) {
    match(receive, offer->send);
    offers_.erase(offer);
  }
  return receive;
}

void PartitionedTable::on_send(Peer& peer, const wire::PartitionedSend& offer) noexcept {
  for (PartitionedReceive& receive : unmatched_) {
    if (receive.peer != &peer || receive.envelope.context != offer.context ||
        receive.envelope.tag != offer.tag)
      continue;
    match(receive, offer);
    if (receive.freed) return release(receive);
    if (receive.running) open(receive);
    return;
  }
  if (engine_.dropped_.contains(offer.context)) return;
  if (!base::try_push(offers_, {&peer, offer}))
    engine_.on_failure(base::no_memory("to keep the offer of a partitioned send"));
}

void PartitionedTable::match(PartitionedReceive& receive, const wire::PartitionedSend& offer) {
  receive.matched = true;
  base::List<PartitionedReceive, Receiving>::erase(receive);
  matched_.push_back(receive);
  receive.peer_id = offer.send_id;
  receive.sent_number = offer.partitions;
  receive.sent_bytes = offer.bytes;
  receive.sent_note = offer.note;
  receive.bytes = std::min(receive.bytes, std::size_t{offer.partitions} * offer.bytes);
}

void PartitionedTable::release(PartitionedSend& send) {
  send_ids_.remove(send.id);
  base::List<PartitionedSend, Sending>::erase(send);
  send_slab_.free(&send);
}

// One that is not matched yet keeps its place in the order until its send has come.
void PartitionedTable::release(PartitionedReceive& receive) {
  receive.freed = true;
  if (!receive.matched && receive.peer->state != PeerState::failed &&
      !engine_.dropped_.contains(receive.envelope.context))
    return;
  receive_ids_.remove(receive.id);
  if (receive.first_notification != 0)
    notifications_.erase(receive.first_notification & ~notification_bit);
  if (receive.is_registered) receive.peer->transport->release_cached(receive.memory);
  if (receive.bounce != nullptr) engine_.buffers_.give(receive.bounce, room_of(receive));
  base::List<PartitionedReceive, Receiving>::erase(receive);
  receive_slab_.free(&receive);
}

void PartitionedTable::drop_context(std::uint64_t context) {
  std::erase_if(offers_, [&](const Offer& offer) { return offer.send.context == context; });
  for (auto at = unmatched_.begin(); at != unmatched_.end();) {
    PartitionedReceive& receive = *at;
    ++at;
    if (receive.freed && receive.envelope.context == context) release(receive);
  }
}

// ---------------------------------------------------------------- sending

void PartitionedTable::start(PartitionedSend& send) {
  ++send.started;
  for (std::size_t i = 0; i < send.words(); ++i)
    send.marked[i].store(0, std::memory_order_relaxed);
  std::ranges::fill(send.posted, 0);
  send.left = send.data.number;
  send.error = send.peer->state == PeerState::failed ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
  send.running = true;
  if (send.left == 0 || send.error != MPI_SUCCESS) end(send);
}

void PartitionedTable::on_ready(const wire::PartitionedReady& ready) noexcept {
  PartitionedSend* const send = send_ids_.find(ready.send_id);
  if (send == nullptr) return; // freed before its first round
  ++send->opened;
  send->peer_id = ready.receive_id;
  send->memory = ready.memory;
  send->first_notification = ready.first_notification;
  send->by_messages = ready.by_messages;
  send->refused = ready.refused == wire::Refusal::no          ? MPI_SUCCESS
                  : ready.refused == wire::Refusal::no_memory ? MPI_ERR_NO_MEM
                                                              : MPI_ERR_TRUNCATE;
  post_marked(*send, 0, send->words());
}

void PartitionedTable::post_marked(PartitionedSend& send, std::size_t word,
                                   std::size_t words) noexcept {
  if (!send.running || !send.is_open()) return;
  const std::uint32_t round = send.started;
  for (; word < words; ++word) {
    std::uint64_t fresh = send.marked[word].load(std::memory_order_acquire) & ~send.posted[word];
    send.posted[word] |= fresh;
    for (; fresh != 0; fresh &= fresh - 1) {
      post(send, static_cast<std::uint32_t>(word * 64) +
                     static_cast<std::uint32_t>(std::countr_zero(fresh)));
      if (!send.running || send.started != round) return; // that was the last
    }
  }
}

void PartitionedTable::post_marked(std::uint64_t id, std::uint32_t first, std::uint32_t last) {
  if (PartitionedSend* const send = send_ids_.find(id); send != nullptr && !send->is_open())
    engine_.deliver();
  if (PartitionedSend* const send = send_ids_.find(id))
    post_marked(*send, first / 64, last / 64 + 1);
}

void PartitionedTable::post_left() noexcept {
  left_->exchange(false); // reads too: what was marked before leave() is seen
  for (auto at = sends_.begin(); at != sends_.end();) {
    PartitionedSend& send = *at;
    ++at;
    post_marked(send, 0, send.words());
  }
}

// A partition that cannot be sent ends the round of both sides with an error; the others go their
// way.
void PartitionedTable::post(PartitionedSend& send, std::uint32_t partition) noexcept {
  if (send.is_passed() || send.refused != MPI_SUCCESS) {
    send.error = send.refused != MPI_SUCCESS ? send.refused : MPI_ERR_NO_MEM;
    return count(send);
  }
  if (SendRequest* const fragment = make_part(send, partition))
    return transmit(send, *fragment, partition);
  const wire::Fin fin{.kind = wire::Kind::partition_fin,
                      .lacks = true,
                      .source = static_cast<std::int32_t>(partition),
                      .id = send.peer_id};
  engine_.post_control(*send.peer, &fin, sizeof fin);
  send.error = MPI_ERR_NO_MEM;
  count(send);
}

// A partition as a send of its own; null if there is no memory for it.
SendRequest* PartitionedTable::make_part(PartitionedSend& whole, std::uint32_t partition) noexcept {
  const Data data = whole.data.partition(partition);
  const std::size_t bytes = whole.data.bytes();
  std::byte* packed = nullptr;
  SendRequest* send = nullptr;
  try {
    if (!whole.type->contiguous()) packed = engine_.pack(data, bytes);
    send = base::try_make(engine_.send_slab_, engine_.send_ids_);
  } catch (const base::Error&) {
  } catch (const std::bad_alloc&) {
  }
  if (send == nullptr) {
    engine_.buffers_.give(packed, bytes);
    return nullptr;
  }
  send->peer = whole.peer;
  send->envelope = whole.envelope;
  send->data = data;
  send->bytes = bytes;
  if (packed != nullptr) send->noncontiguous = whole.type;
  send->bounce = packed;
  send->argument = &whole;
  send->continuation = on_written;
  engine_.sends_.push_back(*send);
  return send;
}

void PartitionedTable::transmit(PartitionedSend& whole, SendRequest& send,
                                std::uint32_t partition) noexcept {
  Peer& peer = *whole.peer;
  const std::size_t bytes = send.bytes;
  const std::uint64_t offset = std::uint64_t{partition} * bytes;
  ++engine_.counters_.partitions_sent;
  engine_.counters_.bytes_sent += bytes;
  if (!whole.by_messages) {
    if (!offer(whole, send, partition)) write(whole, send, partition);
    return;
  }
  send.stage = SendStage::awaits_ack;
  const std::byte* const data = engine_.flat(send);
  const std::size_t most = peer.transport->limits().message - sizeof(wire::PartitionFragment);
  std::size_t sent = 0;
  do {
    const std::size_t now = std::min(most, bytes - sent);
    const wire::PartitionFragment fragment{.last = sent + now == bytes,
                                           .partition = partition,
                                           .receive_id = whole.peer_id,
                                           .offset = offset + sent};
    engine_.post_control(peer, &fragment, sizeof fragment, data + sent, now);
    sent += now;
  } while (sent < bytes);
}

void PartitionedTable::write(PartitionedSend& whole, SendRequest& send,
                             std::uint32_t partition) noexcept {
  const wire::Fin fin{.kind = wire::Kind::partition_fin,
                      .source = static_cast<std::int32_t>(partition),
                      .id = whole.peer_id,
                      .bytes = send.bytes};
  const std::uint32_t notification =
      whole.first_notification != 0 ? whole.first_notification + partition : 0;
  engine_.write_and_tell(send, whole.place(partition), send.bytes, notification, fin);
}

// The data of one partition are free, or will not be sent.
void PartitionedTable::on_written(Request& request, void* argument) noexcept {
  auto& whole = *static_cast<PartitionedSend*>(argument);
  auto& send = static_cast<SendRequest&>(request);
  if (send.stage == SendStage::announced) std::erase(whole.table->offered_, &send);
  if (request.status.error != MPI_SUCCESS) whole.error = request.status.error;
  whole.table->engine_.release(&request);
  whole.table->count(whole);
}

void PartitionedTable::on_done(const wire::PartitionedDone& done) noexcept {
  PartitionedSend* const whole = send_ids_.find(done.send_id);
  if (whole == nullptr) return;
  for (auto at = engine_.sends_.begin(); at != engine_.sends_.end();) {
    SendRequest& send = *at;
    ++at;
    if (send.argument == whole && send.continuation == on_written)
      engine_.finish_send(send, MPI_SUCCESS);
  }
}

// ---------------------------------------------------------------- receiving

void PartitionedTable::start(PartitionedReceive& receive) {
  // None is there before the round is open, even if it has no bytes.
  for (std::uint32_t i = 0; i < receive.data.number; ++i)
    receive.missing[i].store(std::max<std::size_t>(receive.data.bytes(), 1),
                             std::memory_order_relaxed);
  receive.error = receive.peer->state == PeerState::failed ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
  receive.running = true;
  if (receive.error != MPI_SUCCESS) return end(receive);
  if (receive.matched) open(receive);
}

// The sender may write.
void PartitionedTable::open(PartitionedReceive& receive) noexcept {
  const bool prepared = receive.prepared || prepare(receive);
  const std::size_t sent = receive.sent_number * receive.sent_bytes;
  using enum wire::Refusal;
  const wire::Refusal refused = sent > room_of(receive) ? too_little : prepared ? no : no_memory;
  const std::size_t units = receive.units(), coming = receive.sent_number * receive.sent_units();
  for (std::size_t i = 0; i < receive.data.number; ++i)
    receive.missing[i].store(coming <= i * units ? 0 : std::min(units, coming - i * units),
                             std::memory_order_release);
  receive.left = receive.sent_number;
  const wire::PartitionedReady ready{.by_messages = !receive.is_registered && sent != 0,
                                     .refused = refused,
                                     .first_notification = receive.first_notification,
                                     .send_id = receive.peer_id,
                                     .receive_id = receive.id,
                                     .memory = receive.memory};
  engine_.post_control(*receive.peer, &ready, sizeof ready);
  if (refused != no) receive.error = prepared ? MPI_ERR_TRUNCATE : MPI_ERR_NO_MEM;
  if (refused != no || receive.left == 0) end(receive);
}

// For all rounds: where the data land, its remote key, and notifications. False if there is no
// memory.
bool PartitionedTable::prepare(PartitionedReceive& receive) noexcept {
  const std::size_t room = room_of(receive);
  if (room != 0) {
    if (!receive.type->contiguous()) {
      receive.bounce = engine_.buffers_.try_take(room);
      if (receive.bounce == nullptr) return false;
    }
    receive.is_registered =
        engine_.try_register(*receive.peer, receive.destination(), room, receive.memory);
    // A row of no notifications would stand where another does.
    if (receive.is_registered && receive.bytes != 0 &&
        receive.sent_bytes <= receive.peer->transport->limits().notified_put)
      take_notices(receive);
  }
  return receive.prepared = true;
}

// The first of so many notifications in a row that no receive has: behind those that were taken
// last, or, where there is no room, the lowest. notification_bit if there is no such row.
std::uint32_t PartitionedTable::free_notices(std::uint32_t number) const {
  const auto fits = [number](std::uint32_t first, std::uint32_t end) {
    return number <= end - first;
  };
  const auto behind = notifications_.lower_bound(next_notification_);
  if (fits(next_notification_, behind == notifications_.end() ? notification_bit : behind->first))
    return next_notification_;
  std::uint32_t first = 0;
  for (const auto& [other, its] : notifications_) {
    if (fits(first, other)) return first;
    first = other + its->sent_number;
  }
  return fits(first, notification_bit) ? first : notification_bit;
}

// One for each partition of the sender.
void PartitionedTable::take_notices(PartitionedReceive& receive) noexcept {
  const std::uint32_t first = free_notices(receive.sent_number);
  if (first == notification_bit) return;
  try {
    notifications_.emplace(first, &receive);
    receive.first_notification = notification_bit | first;
    next_notification_ = first + receive.sent_number;
  } catch (const std::bad_alloc&) { // FINs do as well
  }
}

void PartitionedTable::on_notification(std::uint32_t notification) noexcept {
  const std::uint32_t number = notification & ~notification_bit;
  auto at = notifications_.upper_bound(number);
  if (at == notifications_.begin()) return;
  --at;
  arrived(*at->second, number - at->first);
}

void PartitionedTable::on_fin(const wire::Fin& fin) noexcept {
  PartitionedReceive* const receive = receive_ids_.find(fin.id);
  if (receive == nullptr) return;
  if (fin.lacks) receive->error = MPI_ERR_OTHER;
  arrived(*receive, static_cast<std::uint32_t>(fin.source));
}

void PartitionedTable::on_fragment(const std::byte* packet, std::size_t bytes) noexcept {
  wire::PartitionFragment fragment;
  std::memcpy(&fragment, packet, sizeof fragment);
  PartitionedReceive* const receive = receive_ids_.find(fragment.receive_id);
  if (receive == nullptr || !receive->running) return;
  const std::size_t data = bytes - sizeof fragment;
  const std::size_t room = room_of(*receive);
  if (fragment.offset > room || data > room - fragment.offset) {
    return engine_.on_failure(base::make_error(
        MPI_ERR_INTERN, "rank {} sent {} bytes at {} to a partitioned receive of {} bytes",
        receive->peer->rank, data, fragment.offset, room));
  }
  base::copy(receive->destination() + fragment.offset, packet + sizeof fragment, data);
  if (fragment.last) arrived(*receive, fragment.partition);
}

// A partition of the sender is in place: those of ours that it touches miss fewer bytes.
void PartitionedTable::arrived(PartitionedReceive& receive, std::uint32_t partition) noexcept {
  if (!receive.running || partition >= receive.sent_number) return;
  const std::size_t ours = receive.units();
  std::size_t at = partition * receive.sent_units();
  for (const std::size_t end = at + receive.sent_units(); at < end;) {
    const std::size_t i = at / ours;
    const std::size_t here = std::min(end, (i + 1) * ours) - at;
    const std::uint64_t missing = receive.missing[i].load(std::memory_order_relaxed) - here;
    if (missing == 0 && receive.bounce != nullptr) unpack(receive, static_cast<std::uint32_t>(i));
    receive.missing[i].store(missing, std::memory_order_release);
    at += here;
  }
  ++engine_.counters_.partitions_received;
  if (receive.left == 1 && !receive.is_registered && receive.sent_bytes != 0) {
    const wire::PartitionedDone done{.send_id = receive.peer_id};
    engine_.post_control(*receive.peer, &done, sizeof done);
  }
  count(receive);
}

void PartitionedTable::unpack(PartitionedReceive& receive, std::uint32_t partition) noexcept {
  const Data data = receive.data.partition(partition);
  const std::size_t room = receive.data.bytes(), at = partition * room;
  if (!datatype::unpack(*data.type, data.address, data.count, receive.bounce + at,
                        std::min(room, receive.bytes - at))) // the last may be short
    receive.error = MPI_ERR_NO_MEM;
}

// ---------------------------------------------------------------- the end of a round

// One partition less to come or to go.
void PartitionedTable::count(Partitioned& operation) noexcept {
  if (--operation.left == 0) end(operation);
}

void PartitionedTable::end(Partitioned& operation) noexcept {
  operation.running = false;
  operation.ended(operation.argument, {.source = operation.envelope.source,
                                       .tag = operation.envelope.tag,
                                       .error = operation.error,
                                       .bytes = operation.bytes});
}

// What was on its way to the peer has ended already.
void PartitionedTable::fail_peer(const Peer& peer, std::int32_t error) noexcept {
  std::erase_if(offers_, [&](const Offer& offer) { return offer.peer == &peer; });
  std::erase_if(readable_, [&](const Readable& offer) { return offer.peer == &peer; });
  for_each_running([&](Partitioned& operation, bool) { operation.lost = operation.peer == &peer; });
  // The end of one may begin or release others.
  for (Partitioned* next = any_lost(); next != nullptr; next = any_lost()) {
    next->lost = false;
    next->error = error;
    end(*next);
  }
}

Partitioned* PartitionedTable::any_lost() const {
  Partitioned* found = nullptr;
  for_each_running([&](Partitioned& operation, bool) {
    if (operation.lost) found = &operation;
  });
  return found;
}

} // namespace macadam::engine
