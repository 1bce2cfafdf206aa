// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets of fragments, and the FIN that follows them.
#include "gravel/core.h"

namespace macadam::gravel {

Buffer& Core::find_buffer(BufferId id) const {
  Buffer* const found = buffer_ids_.find(id);
  if (found == nullptr)
    fail(Code::buffer, "{:#x} is no announced buffer, or one whose FIN was sent already", id);
  return *found;
}

const Buffer& Core::buffer(BufferId id) const {
  return find_buffer(id);
}

RequestId Core::put(BufferId id, const void* memory, std::size_t bytes, std::size_t offset,
                    Asked request) {
  if (request == Asked::no && joins_held(id, memory, bytes, offset)) {
    extend_held(bytes, offset);
    if (!may_wait(*held_)) release_held();
    return 0;
  }
  return begin(id, false, const_cast<void*>(memory), bytes, offset, request);
}

RequestId Core::get(BufferId id, void* memory, std::size_t bytes, std::size_t offset,
                    Asked request) {
  return begin(id, true, memory, bytes, offset, request);
}

RequestId Core::begin(BufferId id, bool is_get, void* memory, std::size_t bytes, std::size_t offset,
                      Asked asked) {
  Buffer& into = find_buffer(id);
  const bool sent = into.kind == EntryKind::send_buffer;
  if (sent != is_get)
    fail(Code::buffer, "rank {} has announced a {} buffer: it can be {}", into.peer->rank,
         sent ? "send" : "receive", sent ? "got from, not put to" : "put to, not got from");
  if (offset > into.bytes || bytes > into.bytes - offset)
    fail(Code::range,
         "a fragment of {} bytes at offset {} is outside of the {} bytes (tag {}) that "
         "rank {} has announced",
         bytes, offset, into.bytes, into.tag, into.peer->rank);
  if (!is_get && bytes != 0 && is_full(into) && !into.failed)
    fail(Code::range,
         "a fragment of {} bytes at offset {} after all {} bytes (tag {}) that rank {} has "
         "announced were put: it may be using them",
         bytes, offset, into.bytes, into.tag, into.peer->rank);
  Region* const region = memory_.find(memory, bytes);
  const auto kind = is_get ? RequestKind::get : RequestKind::put;
  Peer& with = *into.peer;
  if (into.fin_left) { // of nothing; the peer may be gone
    if (asked == Asked::no) return 0;
    Request& nothing = make_request(kind, with, bytes, into.tag, nullptr);
    const RequestId request = nothing.id;
    complete(nothing, Code::success);
    return request;
  }
  reach(with);

  const bool joins = !is_get && joins_held(id, memory, bytes, offset);
  if (!joins) release_held();
  if (asked == Asked::no && !is_get && send_at_once(into, memory, bytes)) return 0;

  Request* const made =
      asked == Asked::yes ? &make_request(kind, with, bytes, into.tag, nullptr) : nullptr;
  const RequestId request = made != nullptr ? made->id : 0;
  if (joins) {
    made->joined = std::exchange(held_->request, made);
    extend_held(bytes, offset);
  } else {
    Transfer& transfer = base::make(transfer_slab_, transfer_ids_);
    transfer.buffer = &into;
    transfer.request = made;
    transfer.region = region;
    transfer.local = memory;
    transfer.remote = {into.memory.address + offset, into.memory.key};
    transfer.bytes = bytes;
    transfer.is_get = is_get;
    if (region != nullptr) ++region->uses;
    ++into.unposted;
    ++into.unfinished;
    with.unposted.push_back(transfer);
    held_ = &transfer;
    if (is_get) {
      ++counters_.gets;
      counters_.bytes_got += bytes;
    } else {
      note_put(into, offset, bytes);
    }
  }
  if (may_wait(*held_)) return request;
  try {
    release_held();
  } catch (...) {
    if (request != 0) release(request);
    throw;
  }
  return request;
}

// Bytes of fragments that are better moved together: a packet of the network; or all of what is so
// short that its consumer rather copies it than says where it goes.
std::size_t Core::joined_bytes(const Buffer& buffer) {
  return buffer.promised ? buffer.bytes : buffer.peer->transport->limits().packet;
}

// Whether a put may wait for the next fragment: if both fit into a packet of the network, strips of
// a loop are better moved together, and nobody misses one before the buffer is full. It leaves with
// whatever is called next: a fragment that does not follow it, or anything that waits.
bool Core::may_wait(const Transfer& put) {
  return !put.is_get && put.bytes != 0 && !is_full(*put.buffer) &&
         put.bytes < joined_bytes(*put.buffer);
}

// Whether a fragment lies behind the one that waits, on both sides.
bool Core::joins_held(BufferId id, const void* memory, std::size_t bytes,
                      std::size_t offset) const {
  if (held_ == nullptr || held_->buffer->id != id || bytes == 0) return false;
  const Buffer& buffer = *held_->buffer;
  return static_cast<const std::byte*>(held_->local) + held_->bytes == memory &&
         held_->remote.address + held_->bytes == buffer.memory.address + offset &&
         bytes <= buffer.bytes - offset && held_->bytes + bytes <= joined_bytes(buffer) &&
         held_->region->holds(memory, bytes);
}

// By such a fragment.
void Core::extend_held(std::size_t bytes, std::size_t offset) {
  held_->bytes += bytes;
  note_put(*held_->buffer, offset, bytes);
  ++counters_.joined;
}

void Core::note_put(Buffer& buffer, std::size_t offset, std::size_t bytes) {
  buffer.put.add(offset, offset + bytes);
  ++counters_.puts;
  counters_.bytes_put += bytes;
}

// Its last data have told the consumer.
void Core::note_told(Buffer& buffer) {
  buffer.fin_queued = buffer.fin_left = true;
  ++counters_.filled;
}

bool Core::release_held() {
  if (held_ == nullptr) return false;
  Transfer& next = *std::exchange(held_, nullptr);
  Peer& with = *next.buffer->peer;
  if (with.connected && &with.unposted.front() == &next && post(next)) return true;
  queue(with);
  return false;
}

// Every byte of it was put.
bool Core::is_full(const Buffer& buffer) {
  return buffer.bytes != 0 && buffer.put.bytes() == buffer.bytes;
}

// The fragment that fills a buffer tells the consumer so, if all others are sure to be there before
// it: then data, notification and end of the exchange are one put. 0: a FIN must tell.
std::uint32_t Core::filling_notification(const Transfer& transfer) {
  const Buffer& buffer = *transfer.buffer;
  const engine::Limits& limits = buffer.peer->transport->limits();
  const bool last = buffer.unposted == 1 && (limits.orders_puts || buffer.unfinished == 1);
  if (transfer.is_get || !last || buffer.failed || !is_full(buffer) || transfer.bytes == 0 ||
      transfer.bytes > limits.notified_put)
    return 0;
  if (buffer.promised) return filled_place + static_cast<std::uint32_t>(buffer.request);
  const std::uint32_t name = base::short_id(buffer.request);
  return name == 0 ? 0 : filled_bit | name;
}

// Whether data are all of a promised buffer, and go as a message: where the network's puts are a
// processor's copies, they are copied twice whatever way they go, and that of messages is shortest.
bool Core::travel_as_message(const Buffer& buffer, std::size_t bytes) {
  const engine::Limits& limits = buffer.peer->transport->limits();
  return buffer.promised && bytes == buffer.bytes && limits.copies &&
         sizeof(Filling) + bytes <= limits.message;
}

engine::Posted Core::send_whole(const Buffer& buffer, const void* memory) {
  const Filling filling{static_cast<std::uint32_t>(buffer.request)};
  return buffer.peer->transport->send(*buffer.peer->link, &filling, sizeof filling, memory,
                                      buffer.bytes);
}

// Such a message that can leave now, without a record of its transfer.
bool Core::send_at_once(Buffer& buffer, const void* memory, std::size_t bytes) {
  const bool may = travel_as_message(buffer, bytes) && buffer.put.bytes() == 0;
  if (!may || !buffer.peer->connected) return false;
  if (send_whole(buffer, memory) != engine::Posted::done) return false;
  note_put(buffer, 0, bytes);
  note_told(buffer);
  return true;
}

engine::Posted Core::hand_over(const Transfer& transfer, std::uint32_t& notification) {
  const Peer& with = *transfer.buffer->peer;
  engine::Transport& network = *with.transport;
  if (transfer.bytes == 0) return engine::Posted::done;
  if (transfer.is_get)
    return network.get(*with.link, transfer.local, transfer.remote, transfer.bytes, transfer.id);
  // Messages need room that others may hold for long, the place does not.
  if (notification != 0 && travel_as_message(*transfer.buffer, transfer.bytes) &&
      send_whole(*transfer.buffer, transfer.local) == engine::Posted::done)
    return engine::Posted::done;
  if (notification != 0) {
    const engine::Posted posted = network.put_notified(*with.link, transfer.local, transfer.remote,
                                                       transfer.bytes, transfer.id, notification);
    if (posted != engine::Posted::unnotified) return posted;
    notification = 0;
  }
  return network.put(*with.link, transfer.local, transfer.remote, transfer.bytes, transfer.id);
}

// Hands a transfer to the network; false if it takes none now.
bool Core::post(Transfer& transfer) {
  Buffer& buffer = *transfer.buffer;
  std::uint32_t notification = filling_notification(transfer);
  const engine::Posted posted = hand_over(transfer, notification);
  if (posted == engine::Posted::busy) return false;
  if (notification != 0 && posted != engine::Posted::refused) {
    note_told(buffer);
    Peer::In& in = buffer.peer->in[static_cast<std::size_t>(Ledger::receive_info)];
    if (!buffer.promised && buffer.position == in.credited)
      ++in.credited; // as Core::end_filled() does
  }
  if (posted != engine::Posted::pending) {
    end(transfer, posted == engine::Posted::done);
    return true;
  }
  base::List<Transfer>::erase(transfer);
  if (held_ == &transfer) held_ = nullptr;
  --buffer.unposted;
  advance_fin(buffer);
  return true;
}

void Core::end(Transfer& transfer, bool ok) {
  Buffer& buffer = *transfer.buffer;
  if (transfer.linked()) { // not posted, or over at once
    base::List<Transfer>::erase(transfer);
    --buffer.unposted;
  }
  --buffer.unfinished;
  if (!ok) buffer.failed = true;
  if (transfer.region != nullptr) --transfer.region->uses;
  Request* request = transfer.request;
  if (held_ == &transfer) held_ = nullptr;
  transfer_ids_.remove(transfer.id);
  transfer_slab_.free(&transfer);
  const Code code = ok ? Code::success : buffer.peer->failed ? Code::peer : Code::transfer;
  while (request != nullptr) {
    Request* const earlier = request->joined;
    complete(*request, code); // which may free it
    request = earlier;
  }
  advance_fin(buffer);
}

RequestId Core::send_fin(BufferId id) {
  Buffer& over = find_buffer(id);
  const bool written = over.kind == EntryKind::receive_buffer;
  if (written && !over.failed && !over.peer->failed && over.put.bytes() != over.bytes)
    fail(Code::incomplete,
         "FIN before all fragments: {} of the {} bytes (tag {}) that rank {} has announced were "
         "put, "
         "those at offset {} were not",
         over.put.bytes(), over.bytes, over.tag, over.peer->rank, over.put.gap());
  buffer_ids_.remove(id);
  if (over.fin_left && over.unfinished == 0 && !over.failed) {
    erase(over);
    return 0;
  }
  Request& made = make_request(RequestKind::fin, *over.peer, over.bytes, over.tag, nullptr);
  made.buffer = &over;
  over.fin = &made;
  const RequestId request = made.id;
  advance_fin(over);
  return request;
}

void Core::erase(Buffer& over) {
  base::List<Buffer>::erase(over);
  buffer_slab_.free(&over);
}

// The FIN, unless the last fragment has told, leaves when the data are sure to be there before it:
// on a network that orders puts, when it has accepted them (the paper's footnote 1), else when they
// are over. Data that were got must be there, since the peer may then change them.
void Core::advance_fin(Buffer& buffer) {
  if (buffer.fin == nullptr) return;
  Peer& with = *buffer.peer;
  const bool over = buffer.unfinished == 0;
  if (with.failed || (buffer.fin_left && over)) {
    if (!over) return;
    Request& fin = *buffer.fin;
    // A consumer that was told may be gone by now, and have all it wanted.
    const Code code = buffer.failed                     ? Code::transfer
                      : with.failed && !buffer.fin_left ? Code::peer
                                                        : Code::success;
    erase(buffer);
    fin.buffer = nullptr;
    return complete(fin, code);
  }
  if (buffer.fin_queued) return;
  const bool ordered =
      buffer.kind == EntryKind::receive_buffer && with.transport->limits().orders_puts;
  if (!over && !(ordered && buffer.unposted == 0)) return;
  buffer.fin_queued = true;
  Entry entry;
  entry.bytes = buffer.bytes;
  entry.request = buffer.request;
  entry.tag = buffer.tag;
  entry.kind = EntryKind::fin;
  entry.uses = buffer.promised ? 1 : 0;
  announce(with, Ledger::fin, entry, nullptr, &buffer);
}

} // namespace macadam::gravel
