// SPDX-License-Identifier: BSD-3-Clause
// The words of a target's control block that several origins change, in the window's one domain: by
// the processor's atomics if all ranks share its memory, else all (neighbours and the target itself
// too) by those of the network that connects all, which are not atomic to the processor's.
#include "rma/post.h"
#include "rma/window.h"

#include <atomic>

namespace macadam::rma {

using engine::RemoteMemory;

namespace {

std::atomic_ref<std::uint64_t> word(const Target& target, std::size_t offset) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(target.control_here + offset));
}

RemoteMemory at(RemoteMemory memory, std::size_t offset) {
  return {memory.address + offset, memory.key};
}

} // namespace

std::uint64_t Window::fetch_add(Target& target, std::size_t offset, std::uint64_t add) {
  if (target.word_network == nullptr) return word(target, offset).fetch_add(add);
  run_once(target, [&](std::uint64_t cookie) {
    return target.word_network->atomic(*target.word_link,
                                       {engine::Atomic::Kind::fetch_and_add, add, 0},
                                       at(target.words, offset), target.scratch, cookie);
  });
  return target.scratch[0];
}

void Window::load(Target& target, std::size_t offset, std::uint64_t* words, std::size_t count) {
  if (target.word_network == nullptr) {
    for (std::size_t i = 0; i < count; ++i)
      words[i] = word(target, offset + i * sizeof *words).load();
    return;
  }
  run_once(target, [&](std::uint64_t cookie) {
    return target.word_network->read(*target.word_link, target.scratch, at(target.words, offset),
                                     count * sizeof *words, cookie);
  });
  std::memcpy(words, target.scratch, count * sizeof *words);
}

void Window::store(Target& target, std::size_t offset, const std::uint64_t* words,
                   std::size_t count) {
  if (target.word_network == nullptr) {
    for (std::size_t i = 0; i < count; ++i)
      word(target, offset + i * sizeof *words).store(words[i]);
    return;
  }
  std::memcpy(target.scratch, words, count * sizeof *words);
  target.words_unlanded = true;
  run_once(target, [&](std::uint64_t cookie) {
    return target.word_network->write(*target.word_link, target.scratch, at(target.words, offset),
                                      count * sizeof *words, cookie);
  });
}

// --- TicketLock, control.h.

void Window::take_lock(Target& target, std::size_t lock, bool exclusive, std::uint64_t& ticket) {
  ticket = fetch_add(target, lock + offsetof(TicketLock, next), 1);
  const std::size_t turn =
      lock + (exclusive ? offsetof(TicketLock, writers) : offsetof(TicketLock, readers));
  const auto is_our_turn = [&] {
    std::uint64_t now = 0;
    load(target, turn, &now, 1);
    return now == ticket;
  };
  if (!is_our_turn()) {
    ++counters_.locks_waited;
    waiting_.until_seen(is_our_turn);
  }
  const std::uint64_t next = ticket + 1;
  if (!exclusive) store(target, lock + offsetof(TicketLock, readers), &next, 1);
}

void Window::give_lock(Target& target, std::size_t lock, bool exclusive, std::uint64_t ticket) {
  if (!exclusive) {
    fetch_add(target, lock + offsetof(TicketLock, writers), 1);
    return;
  }
  static_assert(offsetof(TicketLock, writers) == offsetof(TicketLock, readers) + 8);
  const std::uint64_t next[2] = {ticket + 1, ticket + 1};
  store(target, lock + offsetof(TicketLock, readers), next, 2);
}

} // namespace macadam::rma
