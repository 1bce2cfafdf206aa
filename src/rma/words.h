// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma/window.h"

#include <atomic>

// TicketLock (control.h) where the processor's atomics are the window's: a lock that is free is one
// locked instruction each way, which orders memory as a full fence does. Other ways are in
// words.cc.
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
  if (target.word_network != nullptr) [[unlikely]]
    return take_far_lock(target, lock, exclusive, ticket);
  const std::size_t turn = turn_of(lock, exclusive);
  ticket = word(target, lock + offsetof(TicketLock, next)).fetch_add(1);
  if (word(target, turn).load(std::memory_order_acquire) != ticket) [[unlikely]]
    wait_for_turn(target, turn, ticket);
  if (!exclusive) word(target, turn).store(ticket + 1, std::memory_order_release);
}

inline void Window::give_lock(Target& target, std::size_t lock, bool exclusive,
                              std::uint64_t ticket) {
  if (target.word_network != nullptr) [[unlikely]]
    return give_far_lock(target, lock, exclusive, ticket);
  if (exclusive) {
    word(target, lock + offsetof(TicketLock, readers)).store(ticket + 1, std::memory_order_release);
  }
  word(target, lock + offsetof(TicketLock, writers)).fetch_add(1);
}

} // namespace macadam::rma
