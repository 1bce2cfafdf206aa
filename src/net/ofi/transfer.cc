// SPDX-License-Identifier: BSD-3-Clause
// Puts, gets and what else concerns a peer's memory.
//
// Where the provider keeps puts, gets and messages in order (ProviderLimits::ordered), all are
// posted as they come. Else a put is asked to complete only when it is in place, and until then
// nothing that must find it there is posted to its target: no message, no get, no atomic.
#include "net/ofi/transport.h"

#include "base/copy.h"
#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <rdma/fi_rma.h>

namespace macadam::net::ofi {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

} // namespace

RemoteMemory OfiTransport::register_cached(void* memory, std::size_t bytes) {
  const std::scoped_lock guard(lock_);
  if (bytes == 0) return {};
  if (const Region* const region = region_of(memory)) return region->name(memory);
  const mem::Registration* const registration = cache_.register_range(memory, bytes);
  if (registration == nullptr) {
    base::fail(MPI_ERR_NO_MEM,
               "libfabric: {} bytes at {} cannot be registered; {} regions of {} bytes together "
               "are in use; {}; transfer less at once, or raise the limit that is named",
               bytes, fmt::ptr(memory), cache_.entries(), cache_.pinned_bytes(), cache_.refusal());
  }
  return static_cast<const Region&>(*registration->region).name(memory);
}

void OfiTransport::release_cached(RemoteMemory memory) noexcept {
  if (memory.key == 0) return;
  const std::scoped_lock guard(lock_);
  mem::Registration* const registration = cache_.find_remote_key(memory.key);
  if (registration != nullptr) cache_.deregister(*registration); // else of the heap, which stays
  cache_.collect();
}

RemoteMemory OfiTransport::register_region(void* memory, std::size_t bytes) {
  if (bytes == 0) return {};
  const std::scoped_lock guard(lock_);
  auto region = fabric_.register_memory(memory, bytes, mem::Access::remote);
  const RemoteMemory name = static_cast<const Region&>(*region).name(memory);
  exposed_.emplace(name.key, std::move(region));
  return name;
}

void OfiTransport::deregister_region(RemoteMemory memory) noexcept {
  const std::scoped_lock guard(lock_);
  exposed_.erase(memory.key);
}

Posted OfiTransport::put(engine::Link& link, const void* local, RemoteMemory target,
                         std::size_t bytes, std::uint64_t cookie) noexcept {
  if (is_self(link)) [[unlikely]] {
    std::byte* const place = fabric_.find(target, bytes);
    if (place == nullptr && bytes != 0) return Posted::refused;
    base::copy(place, local, bytes);
    return Posted::done;
  }
  return transfer(static_cast<Route&>(link), false, const_cast<void*>(local), target, bytes, cookie,
                  0);
}

Posted OfiTransport::put_notified(engine::Link& link, const void* local, RemoteMemory target,
                                  std::size_t bytes, std::uint64_t cookie,
                                  std::uint32_t notification) noexcept try {
  const std::scoped_lock guard(lock_);
  if (is_self(link)) [[unlikely]] {
    const Posted posted = put(link, local, target, bytes, cookie);
    if (posted != Posted::done) return posted;
    to_self_.notify(notification, bytes);
    chores_ = true;
    return Posted::done;
  }
  return transfer(static_cast<Route&>(link), false, const_cast<void*>(local), target, bytes, cookie,
                  notification);
} catch (...) {
  return break_down();
}

Posted OfiTransport::get(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
                         std::uint64_t cookie) noexcept {
  if (is_self(link)) [[unlikely]] {
    const std::byte* const place = fabric_.find(target, bytes);
    if (place == nullptr && bytes != 0) return Posted::refused;
    base::copy(local, place, bytes);
    return Posted::done;
  }
  return transfer(static_cast<Route&>(link), true, local, target, bytes, cookie, 0);
}

Posted OfiTransport::transfer(Route& route, bool is_get, void* local, RemoteMemory remote,
                              std::size_t bytes, std::uint64_t cookie,
                              std::uint32_t notification) noexcept try {
  const std::scoped_lock guard(lock_);
  if (bytes == 0 || route.state == Route::State::broken) return Posted::done;
  if (!can_post(route) || (is_get && route.unplaced != 0)) return refuse(route);
  if (!is_get && notification == 0 && fabric_.limits().ordered && bytes <= inject_bytes_ &&
      put_small(route, local, remote, bytes))
    return Posted::done;
  mem::Registration* registration = nullptr;
  void* descriptor = nullptr;
  if (fabric_.limits().registers_local) {
    if (const Region* const region = region_of(local)) {
      descriptor = region->descriptor();
    } else {
      registration = cache_.acquire(local, bytes);
      if (registration == nullptr) return Posted::refused;
      descriptor = static_cast<const Region&>(*registration->region).descriptor();
    }
  }
  Transfer* const made = transfers_.make();
  Transfer& transfer = *made;
  transfer.route = &route;
  transfer.cookie = cookie;
  transfer.local = static_cast<std::byte*>(local);
  transfer.remote = remote;
  transfer.bytes = bytes;
  transfer.notification = notification;
  transfer.is_get = is_get;
  transfer.registration = registration;
  transfer.descriptor = descriptor;
  if (!is_get && !fabric_.limits().ordered) ++route.unplaced;
  ++(is_get ? counters_.gets : counters_.puts);
  route.transfers.push_back(transfer);
  route.unposted.push_back(transfer);
  advance(transfer);
  if (route.unposted.empty()) return Posted::pending;
  refused_ = true; // to be tried again soon
  return Posted::pending;
} catch (...) {
  return break_down();
}

// The provider copies the data, and later messages follow it.
bool OfiTransport::put_small(Route& route, const void* local, RemoteMemory target,
                             std::size_t bytes) {
  Operation* const operation = begin(Operation::Kind::put_small, route);
  const long result = post_access(route, false, static_cast<std::byte*>(const_cast<void*>(local)),
                                  nullptr, target, bytes, FI_INJECT | FI_COMPLETION, *operation);
  if (!is_taken(result, *operation)) return false;
  ++counters_.puts;
  return true;
}

long OfiTransport::post_access(Route& route, bool is_get, std::byte* local, void* descriptor,
                               RemoteMemory remote, std::size_t bytes, std::uint64_t flags,
                               Operation& operation) {
  iovec here = {local, bytes};
  fi_rma_iov there = {remote.address, bytes, remote.key};
  fi_msg_rma message = {};
  message.msg_iov = &here;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = route.address;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = &operation.room;
  return is_get ? fi_readmsg(fabric_.endpoint(), &message, flags)
                : fi_writemsg(fabric_.endpoint(), &message, flags);
}

// Posts what fits of a transfer, the front of its route's, and its notification once it may; true
// if that was all.
bool OfiTransport::advance(Transfer& transfer) {
  Route& route = *transfer.route;
  const bool ordered = fabric_.limits().ordered;
  while (transfer.posted < transfer.bytes) {
    const std::size_t bytes = std::min(fabric_.limits().message, transfer.bytes - transfer.posted);
    Operation* const operation = begin(Operation::Kind::transfer, route);
    operation->transfer = &transfer;
    const std::uint64_t flags =
        FI_COMPLETION |
        (transfer.is_get || ordered ? 0 : static_cast<std::uint64_t>(FI_DELIVERY_COMPLETE));
    const long result = post_access(
        route, transfer.is_get, transfer.local + transfer.posted, transfer.descriptor,
        {transfer.remote.address + transfer.posted, transfer.remote.key}, bytes, flags, *operation);
    if (!is_taken(result, *operation)) return false;
    ++transfer.under_way;
    transfer.posted += bytes;
  }
  if (transfer.notification != 0 && !transfer.noticed) {
    if (route.credits == 0 || (!ordered && transfer.under_way != 0)) return false;
    const wire::Notice notice = {transfer.bytes, transfer.notification, 0};
    if (post_message(route, wire::Kind::notice, &notice, sizeof notice, nullptr, 0) != Posted::done)
      return false;
    transfer.noticed = true;
  }
  base::List<Transfer>::erase(transfer);
  return true;
}

// After a completion, or when there may be room again.
void OfiTransport::advance_all(Route& route, Sink& sink) {
  while (route.state == Route::State::open && !route.unposted.empty()) {
    Transfer& front = route.unposted.front();
    if (!advance(front)) return;
    if (is_finished(front)) finish(front, sink);
  }
}

void OfiTransport::finish(Transfer& transfer, Sink& sink) {
  base::List<Transfer>::erase(transfer);
  base::List<Transfer, OfRoute>::erase(transfer);
  if (!transfer.is_get && !fabric_.limits().ordered) --transfer.route->unplaced;
  if (transfer.registration != nullptr) cache_.release(*transfer.registration);
  const std::uint64_t cookie = transfer.cookie;
  const bool ok = !transfer.failed;
  transfers_.free(&transfer);
  sink.on_complete(cookie, ok);
}

// Where order is kept, the peer answers when it has taken all before the question; where it is not,
// the puts themselves have told.
Posted OfiTransport::flush(engine::Link& link, std::uint64_t cookie) noexcept try {
  const std::scoped_lock guard(lock_);
  if (is_self(link)) return Posted::done;
  auto& route = static_cast<Route&>(link);
  if (route.state == Route::State::broken) return Posted::done;
  if (!can_send(route)) return refuse(route);
  if (!fabric_.limits().ordered) return Posted::done;
  const wire::Question question = {++inquiries_};
  route.inquiries.emplace(question.id, Inquiry{.cookie = cookie});
  if (post_message(route, wire::Kind::ask, &question, sizeof question, nullptr, 0) !=
      Posted::done) {
    route.inquiries.erase(question.id);
    return Posted::busy;
  }
  return Posted::pending;
} catch (...) {
  return break_down();
}

// Done by the process that has the word: libfabric's own atomics cost the order of puts and
// messages with the providers that can be had everywhere, which do the same in software.
Posted OfiTransport::atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                            std::uint64_t* result, std::uint64_t cookie) noexcept try {
  const std::scoped_lock guard(lock_);
  if (is_self(link)) {
    std::byte* const word = fabric_.find(target, word_bytes);
    if (word == nullptr) return Posted::refused;
    *result = change(word, what);
    return Posted::done;
  }
  auto& route = static_cast<Route&>(link);
  if (route.state == Route::State::broken) return Posted::done;
  if (!can_send(route)) return refuse(route);
  const wire::AtomicRequest request = {++inquiries_, target, what.operand, what.compare,
                                       static_cast<std::uint64_t>(what.kind)};
  route.inquiries.emplace(request.id, Inquiry{.cookie = cookie, .result = result});
  if (post_message(route, wire::Kind::atomic, &request, sizeof request, nullptr, 0) !=
      Posted::done) {
    route.inquiries.erase(request.id);
    return Posted::busy;
  }
  ++counters_.atomics;
  return Posted::pending;
} catch (...) {
  return break_down();
}

std::uint64_t OfiTransport::change(std::byte* word, const engine::Atomic& what) {
  const std::atomic_ref value(*reinterpret_cast<std::uint64_t*>(word));
  if (what.kind == engine::Atomic::Kind::fetch_and_add) return value.fetch_add(what.operand);
  std::uint64_t old = what.compare;
  value.compare_exchange_strong(old, what.operand);
  return old;
}

} // namespace macadam::net::ofi
