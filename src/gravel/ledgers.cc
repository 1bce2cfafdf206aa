// SPDX-License-Identifier: BSD-3-Clause
// The ledgers (Danalis et al., section 2.1): rings in memory of their reader, one for each writer,
// so a writer needs no atomic operation. An entry is a put with a notification. The writer counts
// what it has written, the reader what it has taken out, and tells: with every entry that goes the
// other way, or by itself before the writer could wait for it.
#include "gravel/core.h"

#include <algorithm>

namespace macadam::gravel {
namespace {

constexpr std::size_t index(Ledger ledger) {
  return static_cast<std::size_t>(ledger);
}

RemoteMemory at(RemoteMemory ledgers, std::size_t slot) {
  ledgers.address += slot * sizeof(Slot);
  return ledgers;
}

constexpr std::uint64_t credit_cookie = std::uint64_t{1} << 63; // no id has this bit

} // namespace

// ---------------------------------------------------------------- out

void Core::announce(Peer& to, Ledger ledger, const Entry& entry, Request* leaves,
                    Buffer* finishes) {
  Outgoing& outgoing = *outgoing_slab_.make();
  outgoing.entry = entry;
  outgoing.leaves = leaves;
  outgoing.finishes = finishes;
  Peer::Out& out = to.out[index(ledger)];
  if (!has_room(out)) ++counters_.ledger_full;
  out.waiting.push_back(outgoing);
  queue(to);
  if (to.connected) write_waiting(to);
}

bool Core::has_room(const Peer::Out& out) const {
  return out.written - out.consumed < layout_.slots;
}

// Writes what there is room for; true if anything was.
bool Core::write_waiting(Peer& to) {
  bool moved = false;
  for (std::size_t i = 0; i < ledger_count; ++i) {
    Peer::Out& out = to.out[i];
    while (!out.waiting.empty() && has_room(out)) {
      Outgoing& next = out.waiting.front();
      if (next.finishes != nullptr) next.entry.failed = next.finishes->failed ? 1 : 0;
      if (!write(to, static_cast<Ledger>(i), next.entry)) return moved;
      moved = true;
      out.waiting.pop_front();
      Request* const leaves = next.leaves;
      Buffer* const finishes = next.finishes;
      outgoing_slab_.free(&next);
      if (leaves != nullptr) complete(*leaves, Code::success);
      if (finishes != nullptr) {
        finishes->fin_left = true;
        advance_fin(*finishes);
      }
    }
  }
  return moved;
}

bool Core::write(Peer& to, Ledger ledger, const Entry& entry) {
  Peer::Out& out = to.out[index(ledger)];
  // Its last content has been read by the peer, so the network has long done with it.
  Entry& own = to.written[layout_.slot(0, ledger, out.written)].entry;
  own = entry;
  own.consumed = all_consumed(to);
  const RemoteMemory target = at(to.ledgers, layout_.slot(rank_, ledger, out.written));
  const auto notification = static_cast<std::uint32_t>(1 + index(ledger));
  if (to.transport->put_notified(*to.link, &own, target, sizeof own, 0, notification) ==
      engine::Posted::busy)
    return false;
  if (ledger == Ledger::receive_info && entry.uses == 0) {
    if (Request* const its = request_ids_.find(entry.request)) its->position = out.written;
  }
  ++out.written;
  note_credited(to, own.consumed);
  ++counters_.entries;
  return true;
}

// ---------------------------------------------------------------- in

void Core::on_put(Rank source, std::uint32_t notification, std::size_t) noexcept try {
  Peer& from = peer(source);
  if (from.failed) return;
  if ((notification & filled_bit) != 0) return end_filled(from, notification & ~filled_bit);
  if (notification >= filled_place) return end_place(from, notification - filled_place, false);
  if (notification == credit_notification)
    return learn(from, ledgers_[layout_.credits(source)].consumed);
  const auto ledger = static_cast<Ledger>(notification - 1);
  Peer::In& in = from.in[index(ledger)];
  if (in.arrived - consumed(from, ledger) >= layout_.slots)
    fail(Code::system, "rank {} has written where it must not (notification {})", source,
         notification);
  const Entry& entry = ledgers_[layout_.slot(source, ledger, in.arrived)].entry;
  const std::uint32_t position = in.arrived++;
  learn(from, entry.consumed);
  if (ledger == Ledger::fin) {
    if (entry.uses != 0)
      end_place(from, static_cast<std::uint32_t>(entry.request), entry.failed != 0);
    else
      end_exchange(from, request_ids_.find(entry.request), entry.failed != 0);
  } else {
    Arrived& arrived = *arrived_slab_.make();
    arrived.peer = &from;
    arrived.position = position;
    in.untaken.push_back(arrived);
    const bool full = in.arrived - consumed(from, ledger) == layout_.slots;
    if (entry.uses != 0 || full) keep_all(in, ledger);
    arrived_[index(ledger)].push_back(arrived);
  }
  if (owes_credits(from)) queue(from);
} catch (...) {
  breakdown_.note();
}

// A program may want next what comes last: what fills a ledger leaves it, and so does a promise,
// which is taken bit by bit. With it goes what is before it, as the ring gives back room in its
// order.
void Core::keep_all(Peer::In& in, Ledger ledger) {
  while (!in.untaken.empty()) {
    Arrived& arrived = in.untaken.front();
    arrived.entry = entry_of(arrived, ledger);
    arrived.kept = true;
    base::List<Arrived, OfPeer>::erase(arrived);
    in.kept.push_back(arrived);
  }
}

// What a peer has announced goes with it; but that it wanted to send may still be learnt.
void Core::forget(Peer::In& in, Ledger ledger) {
  for (auto* const list : {&in.kept, &in.untaken}) {
    for (auto at = list->begin(); at != list->end();) {
      Arrived& arrived = *at;
      ++at;
      if (entry_of(arrived, ledger).kind != EntryKind::send_request) erase(arrived);
    }
  }
}

// A FIN is taken out at once: it needs no decision.
void Core::end_exchange(Peer& from, Request* over, bool failed) {
  const bool known =
      over != nullptr && over->peer == &from && !over->complete &&
      (over->kind == RequestKind::receive_buffer || over->kind == RequestKind::send_buffer);
  if (!known) fail(Code::system, "rank {} has sent the end of an exchange that is none", from.rank);
  complete(*over, failed ? Code::transfer : Code::success);
}

// The process that fills a buffer has taken its entry out of the ledger, so it need not tell that.
// Both sides count the entry only if it is the next one: so the writer knows of all that the reader
// has told.
void Core::end_filled(Peer& from, std::uint32_t name) {
  Request* const over = request_ids_.find_short(name);
  Peer::Out& out = from.out[index(Ledger::receive_info)];
  if (over != nullptr && over->position == out.consumed) {
    ++out.consumed;
    if (!out.waiting.empty()) queue(from);
  }
  end_exchange(from, over, false);
}

std::uint32_t Core::consumed(const Peer& of, Ledger ledger) const {
  const Peer::In& in = of.in[index(ledger)];
  // In the order of the ring: an entry that was taken out before an older one gives no room yet.
  return in.untaken.empty() ? in.arrived : in.untaken.front().position;
}

Consumed Core::all_consumed(const Peer& of) const {
  return {consumed(of, Ledger::receive_info), consumed(of, Ledger::send_info),
          consumed(of, Ledger::fin)};
}

void Core::note_credited(Peer& to, const Consumed& credited) {
  for (std::size_t i = 0; i < ledger_count; ++i)
    to.in[i].credited = credited[i];
}

void Core::learn(Peer& from, const Consumed& credits) {
  for (std::size_t i = 0; i < ledger_count; ++i) {
    Peer::Out& out = from.out[i];
    // Credits told by themselves may have been overwritten by later ones before their notification
    // was read, and then are newer than the entries that come next.
    if (static_cast<std::int32_t>(credits[i] - out.consumed) <= 0) continue;
    if (credits[i] - out.consumed > out.written - out.consumed)
      fail(Code::system, "rank {} has taken {} entries out of a ledger that had {}", from.rank,
           credits[i] - out.consumed, out.written - out.consumed);
    out.consumed = credits[i];
    if (!out.waiting.empty()) queue(from);
  }
}

// Half a ledger was taken out; or anything, and the writer knows of no room.
bool Core::owes_credits(const Peer& to) const {
  for (std::size_t i = 0; i < ledger_count; ++i) {
    const Peer::In& in = to.in[i];
    const std::uint32_t owed = consumed(to, static_cast<Ledger>(i)) - in.credited;
    if (owed == 0) continue;
    if (owed >= std::max(layout_.slots / 2, 1u) || in.arrived - in.credited == layout_.slots)
      return true;
  }
  return false;
}

bool Core::tell_credits(Peer& to) {
  if (to.noting) return false; // its memory is in use
  Consumed& own = to.written[layout_.credits(0)].consumed;
  own = all_consumed(to);
  const engine::Posted posted =
      to.transport->put_notified(*to.link, &own, at(to.ledgers, layout_.credits(rank_)), sizeof own,
                                 credit_cookie | to.rank, credit_notification);
  if (posted == engine::Posted::busy) return false;
  to.noting = posted == engine::Posted::pending;
  note_credited(to, own);
  ++counters_.credits;
  return true;
}

// Without a notification: the peer need not look at it, and it takes none of the peer's receives,
// of which one that is gone may have none left.
void Core::probe(Rank rank) {
  Peer& probed = peer(rank);
  connect(probed);
  if (!probed.connected || probed.failed || probed.noting) return;
  Consumed& own = probed.written[layout_.credits(0)].consumed;
  own = all_consumed(probed);
  const engine::Posted posted =
      probed.transport->put(*probed.link, &own, at(probed.ledgers, layout_.credits(rank_)),
                            sizeof own, credit_cookie | rank);
  probed.noting = posted == engine::Posted::pending;
}

void Core::on_complete(std::uint64_t cookie, bool ok) noexcept try {
  if (cookie == 0) return; // an entry: its reader tells
  if ((cookie & credit_cookie) != 0) {
    Peer& credited = peer(static_cast<Rank>(cookie));
    credited.noting = false;
    return queue(credited);
  }
  if (Transfer* const transfer = transfer_ids_.find(cookie)) end(*transfer, ok);
} catch (...) {
  breakdown_.note();
}

// ---------------------------------------------------------------- taking entries out

const Entry& Core::entry_of(const Arrived& arrived, Ledger ledger) const {
  if (arrived.kept) return arrived.entry;
  return ledgers_[layout_.slot(arrived.peer->rank, ledger, arrived.position)].entry;
}

void Core::erase(Arrived& arrived) {
  base::List<Arrived, OfPeer>::erase(arrived);
  base::List<Arrived, OfLedger>::erase(arrived);
  arrived_slab_.free(&arrived);
}

// The oldest of a list that fits.
template <class List>
Arrived* Core::find(const List& untaken, Ledger ledger, EntryKind kind, int tag) {
  for (Arrived& arrived : untaken) {
    const Entry& entry = entry_of(arrived, ledger);
    if (entry.kind == kind && (tag == any_tag || entry.tag == tag)) return &arrived;
  }
  return nullptr;
}

// Null if there is none.
Arrived* Core::find_oldest(Ledger ledger, EntryKind kind, int source, int tag) {
  check_tag(tag, true);
  Arrived* found = nullptr;
  if (source != any_source) {
    Peer& from = peer(source, "source");
    const Peer::In& in = from.in[index(ledger)];
    found = find(in.kept, ledger, kind, tag);
    if (found == nullptr) found = find(in.untaken, ledger, kind, tag);
    if (found == nullptr) reach(from);
    return found;
  }
  found = find(arrived_[index(ledger)], ledger, kind, tag);
  if (found == nullptr && lost_ != 0 && lost_ + 1 >= size_)
    fail(Code::peer, "all other ranks are gone");
  return found;
}

// Once more, of `uses`: with the last its entry may be written anew.
void Core::take_out(Arrived& found, std::uint32_t uses) {
  Peer& its = *found.peer;
  if (++found.taken < uses) return;
  erase(found);
  if (!owes_credits(its)) return;
  flush(its);
  if (has_work(its)) queue(its);
}

std::optional<BufferId> Core::take_buffer(Ledger ledger, EntryKind kind, int source, int tag) {
  Arrived* const found = find_oldest(ledger, kind, source, tag);
  if (found == nullptr) return {};
  const Entry& entry = entry_of(*found, ledger);
  Buffer& made = base::make(buffer_slab_, buffer_ids_);
  buffers_.push_back(made);
  made.peer = found->peer;
  made.kind = kind;
  made.tag = entry.tag;
  made.memory = entry.memory;
  made.bytes = entry.bytes;
  made.request = entry.request;
  made.position = found->position;
  made.promised = entry.uses != 0;
  if (made.promised) {
    const std::uint32_t place = (entry.place + found->taken) % entry.places;
    made.memory.address += place * entry.bytes;
    made.request += place;
  }
  take_out(*found, entry.uses);
  return made.id;
}

std::optional<BufferId> Core::take_receive_buffer(int consumer, int tag) {
  return take_buffer(Ledger::receive_info, EntryKind::receive_buffer, consumer, tag);
}

std::optional<BufferId> Core::take_send_buffer(int producer, int tag) {
  return take_buffer(Ledger::send_info, EntryKind::send_buffer, producer, tag);
}

std::optional<SendRequest> Core::take_send_request(int producer, int tag) {
  Arrived* const found = find_oldest(Ledger::send_info, EntryKind::send_request, producer, tag);
  if (found == nullptr) return {};
  const Entry& entry = entry_of(*found, Ledger::send_info);
  const SendRequest taken{found->peer->rank, entry.tag, entry.bytes};
  take_out(*found, 1);
  return taken;
}

} // namespace macadam::gravel
