// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma/window.h"

#include <atomic>

// TicketLock (control.h) where the processor's atomics are the window's: a lock that is free is one
// locked instruction each way, which orders memory as a full fence does. Other ways are in
// remote_atomics.cc.
namespace macadam::rma {

inline std::atomic_ref<std::uint64_t> word(const Target& target, std::size_t offset) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(target.control_here + offset));
}

// The word of a lock that tells whose turn it is.
constexpr std::size_t turn_of(std::size_t lock, bool exclusive) {
  return lock + (exclusive ? offsetof(TicketLock, writers) : offsetof(TicketLock, readers));
}

inline void Window::take_lock(Target& target, std::size_t lock, bool exclusive,
                              std::uint64_t& ticket) {
  if (target.atomics_network != nullptr) [[unlikely]]
    return take_network_lock(target, lock, exclusive, ticket);
  const std::size_t turn = turn_of(lock, exclusive);
  ticket = word(target, lock + offsetof(TicketLock, next)).fetch_add(1);
  if (word(target, turn).load(std::memory_order_acquire) != ticket) [[unlikely]]
    wait_for_turn(target, turn, ticket);
  if (!exclusive) word(target, turn).store(ticket + 1, std::memory_order_release);
}

inline void Window::give_lock(Target& target, std::size_t lock, bool exclusive,
                              std::uint64_t ticket) {
  if (target.atomics_network != nullptr) [[unlikely]]
    return give_network_lock(target, lock, exclusive, ticket);
  if (exclusive) {
    word(target, lock + offsetof(TicketLock, readers)).store(ticket + 1, std::memory_order_release);
  }
  word(target, lock + offsetof(TicketLock, writers)).fetch_add(1);
}

// --- The accumulate lock where the processor's atomics are the window's. It has writers alone, so
// the word of whose turn it is has one writer, and ends it by a plain store. Both words count those
// who hold it to use atomics in their lower halves, and those in bulk in their upper ones.
//
// Where all memory is mapped, a few elements are changed by atomics, many in bulk, under the lock
// and without atomics. The two exclude each other. A rank that is about to use atomics says so in a
// byte of its own, and then looks whether anybody in bulk has come to the lock and not gone; one in
// bulk has come before it looks at the bytes of all others. Each has stored before it looks, in the
// one order of such operations, so of two that come together at least one sees the other: who is in
// bulk waits until the other has ended, and a rank that finds one in bulk takes the lock, by turns,
// so that nobody starves. No atomic of one falls between the loads and stores of the other.

// Elements up to which atomics are taken. Those of the network take a round trip for all of them,
// for which the lock takes three.
constexpr MPI_Count few_elements = 4;
// Bytes that are worked on at a time, so for which the lock is held.
constexpr std::size_t fragment_bytes = 16 << 10;

constexpr std::size_t accumulate_lock = offsetof(Control, accumulate);
constexpr std::size_t accumulate_turn = turn_of(accumulate_lock, true);
constexpr std::uint64_t with_atomics = 1;
constexpr std::uint64_t in_bulk = std::uint64_t{1} << 32;

inline std::uint64_t Window::come_to_accumulate(Target& target, std::uint64_t how) {
  const std::uint64_t ticket =
      word(target, accumulate_lock + offsetof(TicketLock, next)).fetch_add(how);
  if (word(target, accumulate_turn).load(std::memory_order_acquire) != ticket) [[unlikely]]
    await_accumulate(target, ticket);
  return ticket;
}
inline void Window::go_from_accumulate(Target& target, std::uint64_t ticket, std::uint64_t how) {
  word(target, accumulate_turn).store(ticket + how, std::memory_order_release);
}
// Looks at those who have come first: who comes later is not alone, and sees our byte.
inline bool Window::anybody_in_bulk(const Target& target) {
  const std::uint64_t come = word(target, accumulate_lock + offsetof(TicketLock, next)).load();
  const std::uint64_t gone = word(target, accumulate_turn).load(std::memory_order_acquire);
  return static_cast<std::int64_t>(come - gone) >= static_cast<std::int64_t>(in_bulk);
}

inline AtAtomics& Window::at_atomics(const Target& target, int rank) const {
  return *reinterpret_cast<AtAtomics*>(target.control_here + layout_.at_atomics(rank));
}

// Nobody else may access the target's memory by this window; or others do so by messages only, of
// which none is served meanwhile.
inline bool Window::is_alone(const Target& target) const {
  return target.held == Held::exclusive || size() == 1 ||
         (target.rank == rank() && combines_at_target());
}

template <class Change>
void Window::atomically(Target& target, Change&& change) {
  if (is_alone(target)) return change();
  std::atomic_ref announced(*target.at_atomics);
  announced.exchange(1);
  const bool free = !anybody_in_bulk(target);
  if (free) [[likely]]
    change();
  announced.store(0, std::memory_order_release);
  if (free) [[likely]]
    return;
  const std::uint64_t ticket = come_to_accumulate(target, with_atomics);
  change();
  go_from_accumulate(target, ticket, with_atomics);
}

inline void Window::take_bulk(Target& target, std::uint64_t& ticket) {
  if (target.atomics_network != nullptr) [[unlikely]]
    return take_network_lock(target, accumulate_lock, true, ticket);
  ticket = come_to_accumulate(target, in_bulk);
  if (!data_by_processor_) return;
  for (int each = 0; each < size(); ++each) {
    if (each != rank() && std::atomic_ref(at_atomics(target, each)).load() != 0) [[unlikely]]
      await_atomics(target, each);
  }
}

inline void Window::give_bulk(Target& target, std::uint64_t ticket) {
  if (target.atomics_network != nullptr) [[unlikely]]
    return give_network_lock(target, accumulate_lock, true, ticket);
  go_from_accumulate(target, ticket, in_bulk);
}

// Runs `work` while nobody else accumulates to the target. Where it throws, others may go on.
template <class Work>
void Window::run_in_bulk(Target& target, bool bars_atomics, Work&& work) {
  if (is_alone(target)) return work();
  std::uint64_t ticket = 0;
  take_bulk(target, ticket);
  try {
    if (bars_atomics) bar_atomics(target);
    work();
  } catch (...) {
    if (!target.failed && target.peer->state != engine::PeerState::failed)
      give_bulk(target, ticket);
    throw;
  }
  give_bulk(target, ticket);
}

} // namespace macadam::rma
