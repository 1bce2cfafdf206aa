// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers that are promised before they are posted (promise.h).
#include "base/copy.h"
#include "gravel/core.h"

#include <algorithm>
#include <cstring>

namespace macadam::gravel {
namespace {

// Of one ring at most: the longer it is, the fewer are the announcements, each of half of it.
constexpr std::size_t ring_bytes = 1 << 20;
// Of all rings of a process: shared memory is not refused when there is no more.
constexpr std::size_t most_ring_memory = 64 << 20;

} // namespace

void Core::promise_receive_buffers(int producer, std::size_t bytes, int tag, std::uint64_t count) {
  check_tag(tag, false);
  check_size(bytes, "bytes");
  check_size(count, "receive buffers");
  if (count == 0) fail(Code::argument, "a promise of no receive buffers");
  Peer& with = reach(producer, "producer");
  if (const Promise* const before = promise_of(producer, tag))
    fail(Code::argument,
         "{} receive buffers of {} bytes with tag {} are promised to rank {} already; post them "
         "first",
         before->unposted, before->bytes, tag, producer);
  auto made = std::make_unique<Promise>();
  made->peer = &with;
  made->tag = tag;
  made->bytes = bytes;
  made->unposted = made->unannounced = count;
  if (bytes != 0 && bytes <= with.transport->limits().cheap_copy) make_ring(*made);
  made->name = free_names(made->places.size());
  Promise& promise = *made;
  promises_.emplace(promise.name, std::move(made));
  with.promises.push_back(promise);
  announce_places(promise);
}

// As long as there is memory for, of which rings take no more than a part: if there is none, the
// buffers are announced when they are posted.
void Core::make_ring(Promise& promise) {
  engine::Transport& network = *promise.peer->transport;
  std::uint64_t places =
      std::min({std::uint64_t{8} * layout_.slots, promise.unannounced,
                std::uint64_t{std::max<std::size_t>(ring_bytes / promise.bytes, 2)},
                std::uint64_t{(most_ring_memory - ring_memory_) / promise.bytes}});
  if (places == 0) return;
  do {
    promise.memory = static_cast<std::byte*>(network.allocate(places * promise.bytes));
  } while (promise.memory == nullptr && (places /= 2) != 0);
  if (promise.memory == nullptr) return;
  try {
    promise.places.resize(places);
    promise.remote = network.register_cached(promise.memory, places * promise.bytes);
    ring_memory_ += places * promise.bytes;
  } catch (const std::exception&) {
    network.free(std::exchange(promise.memory, nullptr));
    promise.places.clear();
  }
}

void Core::free_ring(const Promise& promise) noexcept {
  if (promise.memory == nullptr) return;
  ring_memory_ -= promise.places.size() * promise.bytes;
  promise.peer->transport->release_cached(promise.remote);
  promise.peer->transport->free(promise.memory);
}

// The first of so many names in a row that no promise has.
std::uint32_t Core::free_names(std::size_t places) const {
  std::uint32_t first = 0;
  for (const auto& [name, promise] : promises_) {
    if (name - first > places) break;
    first = name + static_cast<std::uint32_t>(std::max<std::size_t>(promise->places.size(), 1));
  }
  if (first + places >= most_places) fail(Code::system, "there are too many promises");
  return first;
}

// What the next receive buffer for this producer with this tag fulfils.
Promise* Core::promise_of(int producer, int tag) const {
  if (promises_.empty()) return nullptr;
  Peer* its = recent_;
  if (its == nullptr || its->rank != static_cast<Rank>(producer)) {
    const auto found = peers_.find(static_cast<Rank>(producer));
    if (found == peers_.end()) return nullptr;
    its = found->second.get();
  }
  for (Promise& promise : its->promises) {
    if (promise.tag == tag && promise.unposted != 0) return &promise;
  }
  return nullptr;
}

// Tells the producer of free places, once they are half of the ring or all that is to come.
void Core::announce_places(Promise& promise) {
  const std::uint64_t places = promise.places.size();
  const std::uint64_t free = places - (promise.announced - promise.freed);
  const std::uint64_t count = std::min(free, promise.unannounced);
  if (count == 0 || promise.peer->failed) return;
  if (count < promise.unannounced && count < (places + 1) / 2) return;
  Entry entry;
  entry.memory = promise.remote;
  entry.bytes = promise.bytes;
  entry.request = promise.name;
  entry.tag = promise.tag;
  entry.kind = EntryKind::receive_buffer;
  entry.uses = static_cast<std::uint32_t>(count);
  entry.place = static_cast<std::uint32_t>(promise.announced % places);
  entry.places = static_cast<std::uint32_t>(places);
  for (std::uint64_t i = 0; i < count; ++i)
    promise.place(promise.announced++).state = Promise::State::announced;
  promise.unannounced -= count;
  counters_.promised += count;
  announce(*promise.peer, Ledger::receive_info, entry, nullptr, nullptr);
}

// Posts a buffer to the next place. What is there already is taken also from a peer that is gone.
RequestId Core::post_to_place(Promise& promise, Region* region, void* memory) {
  Promise::Place& place = promise.place(promise.bound);
  const bool come = place.state != Promise::State::announced;
  Peer& with = *promise.peer;
  if (!come) reach(with);
  Request& made =
      make_request(RequestKind::receive_buffer, with, promise.bytes, promise.tag, region);
  const RequestId id = made.id;
  made.memory = memory;
  place.posted = &made;
  ++promise.bound;
  --promise.unposted;
  if (come) deliver({promise, place});
  return id;
}

// A buffer was posted that is announced by itself.
void Core::note_posted(Promise& promise) {
  --promise.unposted;
  --promise.unannounced;
  settle(promise);
}

// An announced place by its name.
Core::Named Core::find_place(Peer& from, std::uint32_t name) {
  for (Promise& promise : from.promises) {
    const std::uint32_t place = name - promise.name;
    if (place < promise.places.size() && promise.places[place].state == Promise::State::announced)
      return {promise, promise.places[place]};
  }
  fail(Code::system, "rank {} has filled a promised buffer that is none", from.rank);
}

// Its data have come, or never will.
void Core::end_place(Peer& from, std::uint32_t name, bool failed) {
  const Named over = find_place(from, name);
  over.place.state = failed ? Promise::State::failed : Promise::State::filled;
  if (over.place.posted != nullptr) deliver(over);
}

void Core::on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept {
  on_first_fragment(source, message, bytes, 0);
}

// Goes to the program's memory at once if that has been posted, and else to its place.
void Core::on_first_fragment(Rank source, const std::byte* message, std::size_t bytes,
                             std::size_t rest) noexcept try {
  Peer& from = peer(source);
  if (from.failed) return;
  from.coming = {};
  Filling filling{};
  if (bytes < sizeof filling) fail(Code::system, "rank {} sent {} bytes", source, bytes);
  std::memcpy(&filling, message, sizeof filling);
  const Named its = find_place(from, filling.place);
  if (bytes - sizeof filling + rest != its.promise.bytes)
    fail(Code::system, "rank {} sent {} bytes to a promised buffer of {}", source,
         bytes - sizeof filling + rest, its.promise.bytes);
  Request* const posted = its.place.posted;
  from.coming = {filling.place,
                 posted != nullptr ? static_cast<std::byte*>(posted->memory)
                                   : its.promise.memory_of(its.place),
                 its.promise.bytes};
  if (fill(from.coming, message + sizeof filling, bytes - sizeof filling))
    end_message(its, from.coming);
} catch (...) {
  breakdown_.note();
}

void Core::on_next_fragment(Rank source, const std::byte* data, std::size_t bytes) noexcept try {
  Peer& from = peer(source);
  if (from.failed || !fill(from.coming, data, bytes)) return;
  end_message(find_place(from, from.coming.place), from.coming);
} catch (...) {
  breakdown_.note();
}

// True once all is there.
bool Core::fill(Coming& coming, const std::byte* data, std::size_t bytes) {
  if (bytes > coming.left) fail(Code::system, "a message is longer than it said");
  base::copy(coming.to, data, bytes);
  coming.to += bytes;
  coming.left -= bytes;
  return coming.left == 0;
}

void Core::end_message(const Named& filled, const Coming& message) {
  const Promise& promise = filled.promise;
  filled.place.state = Promise::State::filled;
  if (filled.place.posted == nullptr) return;
  if (message.to == promise.memory_of(filled.place) + promise.bytes) return deliver(filled);
  ++counters_.straight;
  end_use(filled, Code::success);
}

// Data and memory are there.
void Core::deliver(const Named& filled) {
  const Promise& promise = filled.promise;
  if (filled.place.state == Promise::State::failed) return end_use(filled, Code::transfer);
  base::copy(filled.place.posted->memory, promise.memory_of(filled.place), promise.bytes);
  ++counters_.copied;
  end_use(filled, Code::success);
}

void Core::end_use(const Named& over, Code code) {
  auto& [promise, place] = over;
  Request& request = *std::exchange(place.posted, nullptr);
  place.state = Promise::State::over;
  complete(request, code);
  while (promise.freed != promise.announced &&
         promise.place(promise.freed).state == Promise::State::over)
    promise.place(promise.freed++).state = Promise::State::free;
  announce_places(promise);
  settle(promise);
}

// A promise that is fulfilled goes: nobody can write to its ring any more.
void Core::settle(Promise& promise) {
  if (promise.unposted != 0 || promise.freed != promise.announced) return;
  free_ring(promise);
  base::List<Promise>::erase(promise);
  promises_.erase(promise.name);
}

} // namespace macadam::gravel
