// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/permits.h"

#include "base/error.h"

#include "net/rdma/model.h"
#include "net/rdma/transport.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace macadam::net::rdma {

void PermitRows::grow() {
  constexpr std::size_t rows = arena_bytes / sizeof(Permits::Row);
  free_.reserve((arenas_.size() + 1) * rows); // for all that are made, so give() needs no memory
  Arena& arena = arenas_.emplace_back();
  try {
    arena.memory = mem::allocate_pages(arena_bytes, "permits");
    arena.region = device_.register_memory(arena.memory.get(), arena_bytes, Access::remote);
  } catch (...) {
    arenas_.pop_back();
    throw;
  }
  // Fresh pages are zeros, as rows are: they are not written, as that takes memory.
  const auto first = reinterpret_cast<std::uintptr_t>(arena.memory.get());
  for (std::size_t at = arena_bytes; at > 0; at -= sizeof(Permits::Row))
    free_.push_back({first + at - sizeof(Permits::Row), arena.region->remote_key});
}

std::unique_ptr<Permits> PermitRows::make() {
  auto permits = std::make_unique<Permits>();
  if (free_.empty()) grow();
  ++made_;
  permits->ours = free_.back();
  free_.pop_back();
  return permits;
}

void PermitRows::give(std::unique_ptr<Permits> closed) {
  if (!closed->unused()) closed->row() = {};
  free_.push_back(closed->ours);
  --made_;
}

std::size_t PermitRows::bytes() const {
  return arenas_.size() * arena_bytes + made_ * sizeof(Permits);
}

std::uint64_t Permits::issue() {
  for (unsigned at = 0; at < most; ++at) {
    const std::uint32_t bit = 1u << at;
    const bool being_read = (asked & bit) != 0 && found[at] == unknown;
    if ((open & bit) != 0 || being_read) continue;
    open |= bit;
    asked &= ~bit;
    return ++last * most + at;
  }
  return 0;
}

bool Permits::use(std::uint64_t permit) {
  PermitWord& word = row()[place(permit)];
  const std::uint64_t its = number(permit);
  const std::atomic_ref used(word.used), revoked(word.revoked);
  // The word is in use for a later one perhaps.
  if (revoked.load(std::memory_order_relaxed) >= its) return false;
  // Visible to the adapter before the other word is read.
  used.store(2 * its + 1, std::memory_order_seq_cst);
  const bool mine = revoked.load(std::memory_order_seq_cst) < its;
  used.store(mine ? 2 * its : 0, std::memory_order_release);
  return mine;
}

bool Permits::unused() const {
  return last == 0 && std::ranges::all_of(row(), [](const PermitWord& word) {
           return word.used == 0 && word.revoked == 0;
         });
}

void Permits::discard(std::uint64_t permit) {
  open &= ~(1u << place(permit));
}

// ---- The transport's.

Permits& RdmaTransport::permits_of(engine::Link& link) {
  return connector_->permits(is_self(link) ? connector_->get(rank_)
                                           : static_cast<Connection&>(link));
}

std::uint64_t RdmaTransport::issue(engine::Link& link) noexcept {
  try {
    return permits_of(link).issue();
  } catch (const base::Error&) {
  } catch (const std::bad_alloc&) {
  }
  return 0;
}

// A peer whose permits are told has a row; and so has one that was given some.
bool RdmaTransport::use(engine::Link& issuer, std::uint64_t permit) noexcept {
  return permits_of(issuer).use(permit);
}

void RdmaTransport::discard(engine::Link& link, std::uint64_t permit) noexcept {
  permits_of(link).discard(permit);
}

engine::Revoked RdmaTransport::revoke(engine::Link& link, std::uint64_t permit) noexcept try {
  Permits& permits = permits_of(link);
  const unsigned at = Permits::place(permit);
  const std::uint64_t number = Permits::number(permit);
  const auto outcome = [&](std::uint64_t used) {
    return used == 2 * number ? engine::Revoked::no : engine::Revoked::yes;
  };
  if (is_self(link)) {
    permits.row()[at].revoked = number;
    return outcome(permits.row()[at].used);
  }
  auto& connection = static_cast<Connection&>(link);
  if (connection.phase == Phase::broken) return engine::Revoked::yes;
  if ((permits.asked >> at & 1) == 0) {
    ask(connection, permits, at, number);
    return engine::Revoked::unknown;
  }
  if (permits.found[at] == 2 * number + 1) permits.asked &= ~(1u << at); // just now: look again
  const bool known = (permits.asked >> at & 1) != 0 && permits.found[at] != Permits::unknown;
  return known ? outcome(permits.found[at]) : engine::Revoked::unknown;
} catch (...) {
  break_down();
  return engine::Revoked::unknown;
}

// Writes that a permit is revoked and reads, behind that, whether it was used. If there is no room
// or memory now, later.
void RdmaTransport::ask(Connection& connection, Permits& permits, unsigned at,
                        std::uint64_t number) {
  if (permits.found == nullptr)
    permits.found.reset(new (std::nothrow) std::uint64_t[Permits::most]);
  if (permits.found == nullptr) return;
  Buffer* const buffer =
      can_post(connection) && connection.sends.room() >= 2 ? take_buffer() : nullptr;
  const std::uint64_t word = permits.theirs.address + at * sizeof(PermitWord);
  if (buffer == nullptr ||
      !put_small(connection, &number, {word + offsetof(PermitWord, revoked), permits.theirs.key},
                 sizeof number, 0)) {
    if (buffer != nullptr) pool_.give(buffer);
    refuse(connection);
    return;
  }
  Transfer* const made = begin_transfer(connection, 0);
  if (made == nullptr) return pool_.give(buffer);
  permits.asked |= 1u << at;
  permits.found[at] = Permits::unknown;
  Transfer& transfer = *made;
  transfer.bounce = buffer;
  transfer.local = reinterpret_cast<std::byte*>(&permits.found[at]);
  transfer.is_get = true;
  transfer.bytes = transfer.posted = transfer.bounced = sizeof(std::uint64_t);
  Segment segment{buffer->memory, sizeof(std::uint64_t), buffer->local_key};
  SendWork work;
  work.operation = Operation::read;
  work.segments = {&segment, 1};
  work.remote_address = word + offsetof(PermitWord, used);
  work.remote_key = device_key(permits.theirs);
  post(connection, work, nullptr, &transfer);
}

} // namespace macadam::net::rdma
