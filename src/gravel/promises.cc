// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers that are promised before they are posted (promise.h).
#include "base/copy.h"
#include "gravel/core.h"

#include <algorithm>

namespace macadam::gravel {
namespace {

// Of one ring at most: the longer it is, the fewer are the announcements, each of half of it.
constexpr std::size_t ring_bytes = 1 << 20;
// Of all rings of a process: shared memory is not refused when there is no more.
constexpr std::size_t most_ring_memory = 64 << 20;

} // namespace

void Core::promise_receive_buffers(int producer, std::size_t bytes, int tag, std::uint64_t count) {
  check_tag(tag, false);
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
  if (come) deliver(promise, place);
  return id;
}

// A buffer was posted that is announced by itself.
void Core::note_posted(Promise& promise) {
  --promise.unposted;
  --promise.unannounced;
  settle(promise);
}

// Its data have come, or never will.
void Core::end_place(Peer& from, std::uint32_t name, bool failed) {
  const auto after = promises_.upper_bound(name);
  Promise* const its = after == promises_.begin() ? nullptr : std::prev(after)->second.get();
  const std::uint32_t place = its == nullptr ? 0 : name - its->name;
  if (its == nullptr || its->peer != &from || place >= its->places.size() ||
      its->places[place].state != Promise::State::announced)
    fail(Code::system, "rank {} has filled a promised buffer that is none", from.rank);
  its->places[place].state = failed ? Promise::State::failed : Promise::State::filled;
  if (its->places[place].posted != nullptr) deliver(*its, its->places[place]);
}

// Data and memory are there.
void Core::deliver(Promise& promise, Promise::Place& place) {
  Request& over = *std::exchange(place.posted, nullptr);
  const bool filled = place.state == Promise::State::filled;
  const auto index = static_cast<std::size_t>(&place - promise.places.data());
  if (filled) {
    base::copy(over.memory, promise.memory + index * promise.bytes, promise.bytes);
    ++counters_.copied;
  }
  place.state = Promise::State::over;
  complete(over, filled ? Code::success : Code::transfer);
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
