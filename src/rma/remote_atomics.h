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

// --- Accumulates where the processor's atomics are the window's, and all its memory is mapped: a
// few elements by atomics, many at once under the accumulate lock and without. The two exclude each
// other. A rank that is about to use atomics says so in a byte of its own, and then looks whether a
// holder of the lock is in bulk; the holder says that it is, and then looks at the bytes of all
// others. Each has stored before it looks, in the one order of such operations, so of two that come
// together at least one sees the other: the holder waits until the other has ended, and a rank that
// finds a holder in bulk takes the lock, by turns, so that nobody starves. No atomic of one falls
// between the loads and stores of the other.

constexpr std::size_t accumulate_lock = offsetof(Control, accumulate);

inline AtAtomics& Window::at_atomics(const Target& target, int rank) const {
  return *reinterpret_cast<AtAtomics*>(target.control_here + layout_.at_atomics(rank));
}
inline std::atomic_ref<std::uint32_t> in_bulk(const Target& target) {
  return std::atomic_ref(reinterpret_cast<Control*>(target.control_here)->in_bulk);
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
  const bool free = in_bulk(target).load() == 0;
  if (free) [[likely]]
    change();
  announced.store(0, std::memory_order_release);
  if (free) [[likely]]
    return;
  std::uint64_t ticket = 0;
  take_lock(target, accumulate_lock, true, ticket);
  change();
  give_lock(target, accumulate_lock, true, ticket);
}

} // namespace macadam::rma
