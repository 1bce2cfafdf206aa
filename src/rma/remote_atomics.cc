// SPDX-License-Identifier: BSD-3-Clause
// The words of a target's control block that several origins change, in the window's one domain: by
// the processor's atomics if all ranks share its memory, else all (neighbours and the target itself
// too) by those of the network that connects all, which are not atomic to the processor's.
#include "rma/remote_atomics.h"

#include "base/error.h"
#include "base/relax.h"
#include "rma/post.h"

namespace macadam::rma {

using engine::RemoteMemory;

namespace {

RemoteMemory at(RemoteMemory memory, std::size_t offset) {
  return {memory.address + offset, memory.key};
}

} // namespace

// The caller waits for the batch; then the word is in `result`.
void Window::post_fetch_add(Target& target, std::size_t offset, std::uint64_t add,
                            std::uint64_t& result) {
  add_to_batch(target, [&](std::uint64_t cookie) {
    return target.atomics_network->atomic(*target.atomics_link,
                                          {engine::Atomic::Kind::fetch_and_add, add, 0},
                                          at(target.atomics_control, offset), &result, cookie);
  });
}

// Likewise; `value` stays until then.
void Window::post_store(Target& target, std::size_t offset, const void* value, std::size_t bytes) {
  target.atomics_unlanded = true;
  add_to_batch(target, [&](std::uint64_t cookie) {
    return target.atomics_network->write(*target.atomics_link, value,
                                         at(target.atomics_control, offset), bytes, cookie);
  });
}

void Window::post_load(Target& target, std::size_t offset, std::uint64_t& result) {
  add_to_batch(target, [&](std::uint64_t cookie) {
    return target.atomics_network->read(*target.atomics_link, &result,
                                        at(target.atomics_control, offset), sizeof result, cookie);
  });
}

// --- TicketLock: one round trip each way, if it is free.

void Window::take_network_lock(Target& target, std::size_t lock, bool exclusive,
                               std::uint64_t& ticket) {
  const std::size_t turn = turn_of(lock, exclusive);
  post_fetch_add(target, lock + offsetof(TicketLock, next), 1, target.scratch[0]);
  post_load(target, turn, target.scratch[1]);
  wait_for_batch(target);
  ticket = target.scratch[0];
  if (target.scratch[1] != ticket) wait_for_turn(target, turn, ticket);
  if (exclusive) return;
  target.scratch[0] = ticket + 1;
  post_store(target, turn, &target.scratch[0], sizeof target.scratch[0]);
  wait_for_batch(target);
}

void Window::give_network_lock(Target& target, std::size_t lock, bool exclusive,
                               std::uint64_t ticket) {
  if (exclusive) {
    target.scratch[0] = ticket + 1;
    post_store(target, lock + offsetof(TicketLock, readers), &target.scratch[0],
               sizeof target.scratch[0]);
  }
  post_fetch_add(target, lock + offsetof(TicketLock, writers), 1, target.scratch[1]);
  wait_for_batch(target);
  target.atomics_unlanded = false; // what is written before an atomic lands before it
}

// --- The accumulate lock.

// Who has the lock is inside of a call, and mostly has gone before this process could do anything
// else.
void Window::await_accumulate(Target& target, std::uint64_t ticket) {
  constexpr int most_looks = 100;
  for (int i = 0; i < most_looks; ++i) {
    if (word(target, accumulate_turn).load(std::memory_order_acquire) == ticket) return;
    base::relax();
  }
  wait_for_turn(target, accumulate_turn, ticket);
}

void Window::await_atomics(Target& target, int rank) {
  const Target* lost = nullptr;
  waiting_.until_seen([&] {
    if (std::atomic_ref(at_atomics(target, rank)).load() == 0) return true;
    lost = find_lost();
    return lost != nullptr;
  });
  if (lost == nullptr) return;
  base::fail(MPI_ERR_PROC_ABORTED,
             "rank {} of the window (rank {} of MPI_COMM_WORLD) has ended while it may have "
             "accumulated to rank {}",
             lost->rank, lost->peer->rank, target.rank);
}

// Nobody knows which rank holds a lock. A rank that has ended may hold it for ever: so a long wait
// asks after all of them, one after the other.
void Window::wait_for_turn(Target& target, std::size_t turn, std::uint64_t ticket) {
  ++counters_.locks_waited;
  static_assert(offsetof(Control, window) == 0);
  const bool of_window = turn < sizeof(TicketLock);
  const Marked marked(awaits_lock_of_, of_window ? target.rank : -1);
  const Target* lost = nullptr;
  FailureProbe failure_probe;
  int asked = 0;
  const auto now = [&] {
    if (target.atomics_network == nullptr)
      return word(target, turn).load(std::memory_order_acquire);
    post_load(target, turn, target.scratch[0]);
    wait_for_batch(target);
    return target.scratch[0];
  };
  waiting_.until_seen([&] {
    if (now() == ticket) return true;
    lost = find_lost();
    if (lost != nullptr) return true;
    if (failure_probe.is_due(target.atomics_network)) ask_after(this->target(asked++ % size()));
    return false;
  });
  if (lost == nullptr) return;
  base::fail(MPI_ERR_PROC_ABORTED,
             "a lock of rank {} is not given back, and rank {} of the window (rank {} of "
             "MPI_COMM_WORLD), which may hold it, has ended",
             target.rank, lost->rank, lost->peer->rank);
}

} // namespace macadam::rma
