// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/core.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace macadam::gravel {
namespace {

const char* name_of(RequestKind kind) {
  switch (kind) {
  case RequestKind::receive_buffer:
    return "the receive buffer announced to";
  case RequestKind::send_buffer:
    return "the send buffer announced to";
  case RequestKind::send_request:
    return "the send request to";
  case RequestKind::put:
    return "the put to";
  case RequestKind::get:
    return "the get from";
  case RequestKind::fin:
    return "the FIN to";
  }
  return "";
}

// What a request that has ended without success is told to whoever waits for it.
Error failure_of(const Request& ended) {
  // A network may end transfers before it says why.
  const bool gone = ended.code == Code::peer || ended.peer->failed;
  const Rank with = ended.peer->rank;
  if (gone)
    return {Code::peer, fmt::format("rank {} is gone; {} it ({} bytes, tag {}) has failed", with,
                                    name_of(ended.kind), ended.bytes, ended.tag)};
  const bool announced =
      ended.kind == RequestKind::receive_buffer || ended.kind == RequestKind::send_buffer;
  return {ended.code, fmt::format("{} rank {} ({} bytes, tag {}) has failed: {}",
                                  name_of(ended.kind), with, ended.bytes, ended.tag,
                                  announced ? "that rank could not move all data"
                                            : "the network could not move all data")};
}

} // namespace

Core::Core(engine::Networks networks, const boot::Job& job, LedgersOf ledgers_of,
           std::uint32_t slots)
    : networks_(std::move(networks)), network_list_(networks_.begin(), networks_.end()),
      ledgers_of_(std::move(ledgers_of)), rank_(static_cast<Rank>(job.rank())),
      size_(static_cast<Rank>(job.size())), layout_{slots},
      ledgers_(new Slot[size_ * layout_.slots_per_peer()]), memory_(network_list_) {
  for (engine::Transport* const network : network_list_) {
    if (network->limits().notified_put < sizeof(Entry))
      fail(Code::system, "{} has no puts of {} bytes that tell their target, which ledgers need",
           network->limits().name, sizeof(Entry));
    ledger_regions_.push_back(network->register_region(ledgers_.get(), ledger_bytes()));
  }
}

Core::~Core() {
  while (!buffers_.empty())
    buffer_slab_.free(&buffers_.pop_front());
  for (const auto& [name, promise] : promises_) {
    free_ring(*promise);
    base::List<Promise>::erase(*promise);
  }
  // Peers do not know that this is the end, and may still write.
  for (std::size_t i = 0; i < network_list_.size(); ++i)
    network_list_[i]->deregister_region(ledger_regions_[i]);
}

std::size_t Core::ledger_bytes() const {
  return size_ * layout_.slots_per_peer() * sizeof(Slot);
}

// ---------------------------------------------------------------- peers

Peer& Core::peer(Rank rank) {
  if (recent_ != nullptr && recent_->rank == rank) return *recent_;
  std::unique_ptr<Peer>& known = peers_[rank];
  if (known != nullptr) return *(recent_ = known.get());
  auto made = std::make_unique<Peer>();
  made->rank = rank;
  made->transport = &networks_.reaching(rank);
  made->network = static_cast<std::size_t>(
      std::find(network_list_.begin(), network_list_.end(), made->transport) -
      network_list_.begin());
  made->ledgers = ledgers_of_(rank);
  made->written.reset(new Slot[layout_.slots_per_peer()]);
  known = std::move(made);
  return *known;
}

Peer& Core::peer(int rank, const char* role) {
  if (rank < 0 || static_cast<Rank>(rank) >= size_)
    fail(Code::argument, "the {} is rank {}, the ranks of gravel_init's communicator are 0 to {}",
         role, rank, size_ - 1);
  return peer(static_cast<Rank>(rank));
}

// A peer that is to be written to.
Peer& Core::reach(int rank, const char* role) {
  Peer& found = peer(rank, role);
  reach(found);
  return found;
}

void Core::reach(Peer& peer) {
  connect(peer);
  if (peer.failed) fail(Code::peer, "rank {} is gone", peer.rank);
}

void Core::connect(Peer& to) {
  if (to.link != nullptr || to.failed) return;
  engine::PeerState state{};
  to.link = &to.transport->connect(to.rank, state);
  to.connected = state == engine::PeerState::connected;
  if (state == engine::PeerState::failed) fail_peer(to);
}

void Core::on_peer(Rank rank, engine::PeerState state) noexcept try {
  Peer& changed = peer(rank);
  if (state == engine::PeerState::failed) return fail_peer(changed);
  changed.connected = true;
  queue(changed);
} catch (...) {
  breakdown_.note();
}

// Everything that waits for the peer ends, except transfers that the network still holds.
void Core::fail_peer(Peer& gone) {
  if (gone.failed) return;
  gone.failed = true;
  ++lost_;
  for (Peer::Out& out : gone.out) {
    while (!out.waiting.empty())
      outgoing_slab_.free(&out.waiting.pop_front());
  }
  for (std::size_t i = 0; i < ledger_count; ++i)
    forget(gone.in[i], static_cast<Ledger>(i));
  for (Promise& promise : gone.promises) {
    for (Promise::Place& place : promise.places)
      place.posted = nullptr;
  }
  while (!gone.unposted.empty())
    end(gone.unposted.front(), false);
  for (auto at = gone.requests.begin(); at != gone.requests.end();) {
    Request& waiting = *at;
    ++at;
    if (waiting.kind == RequestKind::put || waiting.kind == RequestKind::get) continue;
    if (waiting.buffer != nullptr)
      advance_fin(*waiting.buffer);
    else
      complete(waiting, Code::peer);
  }
}

// ---------------------------------------------------------------- requests

void Core::check_tag(int tag, bool may_be_any) const {
  if (tag >= 0 || (may_be_any && tag == any_tag)) return;
  fail(Code::argument, "the tag is {}, needed 0 or more{}", tag,
       may_be_any ? " (or GRAVEL_ANY_TAG)" : "");
}

// One that is less than zero in the caller's language is refused too.
void Core::check_size(std::uint64_t size, const char* of) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (size > static_cast<std::uint64_t>(most))
    fail(Code::argument, "{} {}, needed 0 to {}", static_cast<std::int64_t>(size), of, most);
}

Request& Core::request(RequestId id) const {
  Request* const found = request_ids_.find(id);
  if (found == nullptr)
    fail(Code::request, "{:#x} is no request, or one that was waited for already", id);
  return *found;
}

Request& Core::make_request(RequestKind kind, Peer& with, std::size_t bytes, int tag,
                            Region* region) {
  Request& made = base::make(request_slab_, request_ids_);
  made.kind = kind;
  made.peer = &with;
  made.bytes = bytes;
  made.tag = tag;
  made.region = region;
  if (region != nullptr) ++region->uses;
  with.requests.push_back(made);
  return made;
}

void Core::complete(Request& over, Code code) {
  base::List<Request>::erase(over);
  over.complete = true;
  over.code = code;
  if (over.region != nullptr) --over.region->uses;
  over.region = nullptr;
  if (over.released) erase(over);
}

void Core::erase(Request& over) {
  request_ids_.remove(over.id);
  request_slab_.free(&over);
}

void Core::finish(Request& over) {
  if (!over.complete) fail(Code::incomplete, "request {:#x} is not complete", over.id);
  if (over.code == Code::success) [[likely]]
    return erase(over);
  const Error failure = failure_of(over);
  erase(over);
  throw failure;
}

void Core::release(RequestId id) {
  Request& released = request(id);
  if (released.complete)
    erase(released);
  else
    released.released = true;
}

RequestId Core::post_receive_buffer(int producer, void* memory, std::size_t bytes, int tag) {
  return post_buffer(EntryKind::receive_buffer, producer, memory, bytes, tag);
}

RequestId Core::post_send_buffer(int consumer, const void* memory, std::size_t bytes, int tag) {
  return post_buffer(EntryKind::send_buffer, consumer, memory, bytes, tag);
}

// Announces memory that the peer will write to or read.
RequestId Core::post_buffer(EntryKind kind, int to, const void* memory, std::size_t bytes,
                            int tag) {
  const bool written = kind == EntryKind::receive_buffer;
  check_tag(tag, false);
  check_size(bytes, "bytes");
  Region* const region = memory_.find(memory, bytes);
  Promise* const promise = written ? promise_of(to, tag) : nullptr;
  if (promise != nullptr && promise->bytes != bytes)
    fail(Code::argument,
         "{} bytes with tag {} for rank {}; {} receive buffers of {} bytes were promised", bytes,
         tag, to, promise->unposted, promise->bytes);
  if (promise != nullptr && promise->has_place())
    return post_to_place(*promise, region, const_cast<void*>(memory));
  Peer& with = reach(to, written ? "producer" : "consumer");
  Request& made = make_request(written ? RequestKind::receive_buffer : RequestKind::send_buffer,
                               with, bytes, tag, region);
  Entry entry;
  if (region != nullptr) entry.memory = region->part(memory, with.network);
  entry.bytes = bytes;
  entry.request = made.id;
  entry.tag = tag;
  entry.kind = kind;
  const RequestId id = made.id;
  announce(with, written ? Ledger::receive_info : Ledger::send_info, entry, nullptr, nullptr);
  if (promise != nullptr) note_posted(*promise);
  return id;
}

RequestId Core::post_send_request(int consumer, std::size_t bytes, int tag) {
  check_tag(tag, false);
  check_size(bytes, "bytes");
  Peer& with = reach(consumer, "consumer");
  Request& made = make_request(RequestKind::send_request, with, bytes, tag, nullptr);
  const RequestId id = made.id;
  Entry entry;
  entry.bytes = bytes;
  entry.tag = tag;
  entry.kind = EntryKind::send_request;
  announce(with, Ledger::send_info, entry, &made, nullptr);
  return id;
}

// ---------------------------------------------------------------- progress

bool Core::progress() {
  if (breakdown_.noted()) fail(Code::system, "{}", breakdown_.what().text);
  bool moved = networks_.poll(*this);
  if (breakdown_.noted()) fail(Code::system, "{}", breakdown_.what().text);
  moved |= release_held();
  for (std::size_t i = 0; i < busy_.size();) {
    Peer& waiting = *busy_[i];
    moved |= flush(waiting);
    if (has_work(waiting)) {
      ++i;
      continue;
    }
    waiting.queued = false;
    busy_[i] = busy_.back();
    busy_.pop_back();
  }
  return moved;
}

void Core::queue(Peer& waiting) {
  if (waiting.queued) return;
  waiting.queued = true;
  busy_.push_back(&waiting);
}

// Whether the network might take something for the peer now.
bool Core::has_work(const Peer& with) const {
  if (with.failed) return false;
  if (!with.unposted.empty() || owes_credits(with)) return true;
  return std::any_of(with.out.begin(), with.out.end(), [this](const Peer::Out& out) {
    return !out.waiting.empty() && has_room(out);
  });
}

bool Core::flush(Peer& with) {
  if (with.failed) return false;
  connect(with);
  if (!with.connected) return false;
  bool moved = false;
  while (!with.unposted.empty() && post(with.unposted.front()))
    moved = true;
  moved |= write_waiting(with);
  if (!with.failed && owes_credits(with)) moved |= tell_credits(with);
  return moved;
}

bool Core::is_connecting() const {
  return std::any_of(busy_.begin(), busy_.end(), [](const Peer* with) {
    return with->link != nullptr && !with->connected && !with->failed;
  });
}

bool Core::at_rest() const {
  return transfer_slab_.live() == 0 && outgoing_slab_.live() == 0;
}

std::string Core::unfinished() const {
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count == 0) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, what, count == 1 ? "" : "s");
  };
  add(request_slab_.live(), "request");
  add(buffer_slab_.live(), "announced buffer");
  return text;
}

void Core::list_counters(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("gravel", name, text, value);
  };
  add("entries", "entries written into peers' ledgers", counters_.entries);
  add("filled", "buffers whose last fragment told of the end", counters_.filled);
  add("promised", "promised buffers that were announced before they were posted",
      counters_.promised);
  add("copied", "promised buffers whose data were copied from their place", counters_.copied);
  add("straight", "... and that a message filled without one", counters_.straight);
  add("joined", "fragments that moved with the one before", counters_.joined);
  add("credits", "times room in a ledger was credited without an entry", counters_.credits);
  add("ledger_full", "entries that found their ledger full", counters_.ledger_full);
  add("puts", "fragments put", counters_.puts);
  add("gets", "fragments got", counters_.gets);
  add("bytes_put", "bytes put", counters_.bytes_put);
  add("bytes_got", "bytes got", counters_.bytes_got);
}

} // namespace macadam::gravel
