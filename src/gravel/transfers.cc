// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets of pieces, and the FIN that follows them.
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

RequestId Core::put(BufferId id, const void* memory, std::size_t bytes, std::size_t offset) {
  return begin(id, false, const_cast<void*>(memory), bytes, offset);
}

RequestId Core::get(BufferId id, void* memory, std::size_t bytes, std::size_t offset) {
  return begin(id, true, memory, bytes, offset);
}

RequestId Core::begin(BufferId id, bool is_get, void* memory, std::size_t bytes,
                      std::size_t offset) {
  Buffer& into = find_buffer(id);
  const bool sent = into.kind == EntryKind::send_buffer;
  if (sent != is_get)
    fail(Code::buffer, "rank {} has announced a {} buffer: it can be {}", into.peer->rank,
         sent ? "send" : "receive", sent ? "got from, not put to" : "put to, not got from");
  if (offset > into.bytes || bytes > into.bytes - offset)
    fail(Code::range,
         "a piece of {} bytes at offset {} is outside of the {} bytes (tag {}) that "
         "rank {} has announced",
         bytes, offset, into.bytes, into.tag, into.peer->rank);
  Region* const region = memory_.find(memory, bytes);
  Peer& with = reach(static_cast<int>(into.peer->rank), "peer");

  Request& made =
      make_request(is_get ? RequestKind::get : RequestKind::put, with, bytes, into.tag, nullptr);
  const RequestId request = made.id;
  Transfer& transfer = *transfer_slab_.make();
  transfer.buffer = &into;
  transfer.request = &made;
  transfer.region = region;
  transfer.local = memory;
  transfer.remote = {into.memory.address + offset, into.memory.key};
  transfer.bytes = bytes;
  transfer.is_get = is_get;
  transfer.id = transfer_ids_.add(&transfer);
  if (region != nullptr) ++region->uses;
  ++into.unposted;
  ++into.unfinished;
  if (!is_get) into.put.add(offset, offset + bytes);
  ++(is_get ? counters_.gets : counters_.puts);
  (is_get ? counters_.bytes_got : counters_.bytes_put) += bytes;
  with.unposted.push_back(transfer);
  queue(with);
  try {
    flush(with);
  } catch (...) {
    this->release(request);
    throw;
  }
  return request;
}

// Hands a transfer to the network; false if it takes none now.
bool Core::post(Transfer& transfer) {
  Buffer& buffer = *transfer.buffer;
  Peer& with = *buffer.peer;
  engine::Posted posted = engine::Posted::done;
  try {
    if (transfer.bytes == 0) {
    } else if (transfer.is_get) {
      posted = with.transport->get(*with.link, transfer.local, transfer.remote, transfer.bytes,
                                   transfer.id);
    } else {
      posted = with.transport->put(*with.link, transfer.local, transfer.remote, transfer.bytes,
                                   transfer.id);
    }
  } catch (...) {
    end(transfer, false);
    throw;
  }
  if (posted == engine::Posted::busy) return false;
  if (posted == engine::Posted::done) {
    end(transfer, true);
    return true;
  }
  base::List<Transfer>::erase(transfer);
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
  Request& request = *transfer.request;
  transfer_ids_.remove(transfer.id);
  transfer_slab_.free(&transfer);
  complete(request, ok ? Code::success : buffer.peer->failed ? Code::peer : Code::transfer);
  advance_fin(buffer);
}

RequestId Core::send_fin(BufferId id) {
  Buffer& over = find_buffer(id);
  const bool written = over.kind == EntryKind::receive_buffer;
  if (written && !over.failed && !over.peer->failed && over.put.bytes() != over.bytes)
    fail(Code::incomplete,
         "FIN before all pieces: {} of the {} bytes (tag {}) that rank {} has announced were put, "
         "those at offset {} were not",
         over.put.bytes(), over.bytes, over.tag, over.peer->rank, over.put.gap());
  buffer_ids_.remove(id);
  Request& made = make_request(RequestKind::fin, *over.peer, over.bytes, over.tag, nullptr);
  made.buffer = &over;
  over.fin = &made;
  const RequestId request = made.id;
  advance_fin(over);
  return request;
}

// The FIN leaves when the data are sure to be there before it: on a network that orders puts, when
// it has accepted them (the paper's footnote 1), else when they are over. Data that were got must
// be there, since the peer may then change them.
void Core::advance_fin(Buffer& buffer) {
  if (buffer.fin == nullptr) return;
  Peer& with = *buffer.peer;
  const bool over = buffer.unfinished == 0;
  if (with.failed || (buffer.fin_left && over)) {
    if (!over) return;
    Request& fin = *buffer.fin;
    const Code code = with.failed ? Code::peer : buffer.failed ? Code::transfer : Code::success;
    base::List<Buffer>::erase(buffer);
    buffer_slab_.free(&buffer);
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
  announce(with, Ledger::fin, entry, nullptr, &buffer);
}

} // namespace macadam::gravel
