// SPDX-License-Identifier: BSD-3-Clause
// Access epochs: which ranks may be accessed now, and what their ends wait for. A rank is opened at
// its first access (or by MPI_Win_lock), so what an epoch costs follows the ranks that are accessed
// and not those of the window.
#include "base/error.h"
#include "rma/messages.h"
#include "rma/post.h"
#include "rma/remote_atomics.h"
#include "rma/window.h"

#include <algorithm>
#include <utility>

namespace macadam::rma {

using engine::Posted;

namespace {

constexpr std::size_t window_lock = offsetof(Control, window);

[[noreturn, gnu::cold, gnu::noinline]] void refuse_unlocked(const char* call, int rank) {
  base::fail(
      MPI_ERR_RMA_SYNC,
      "{} of rank {}, which is not locked; it belongs between MPI_Win_lock (or lock_all) and "
      "the unlock",
      call, rank);
}

} // namespace

Target& Window::opened(int rank) {
  Target& found = target(rank);
  if (!found.open) open(found);
  return found;
}

void Window::open(Target& target) {
  const Turn turn(*this, target);
  if (target.open) return; // by another thread meanwhile
  switch (access_) {
  case Access::fence:
    break;
  case Access::all_locked:
    // As late as possible: a job may have more ranks than this one ever talks to.
    if (target.held == Held::nothing && !unchecked_) {
      take_lock(target, window_lock, false, target.ticket);
      target.held = Held::shared;
    }
    break;
  case Access::locks:
    base::fail(MPI_ERR_RMA_SYNC,
               "rank {} is not locked, {} other ranks are; call MPI_Win_lock for it first",
               target.rank, locks_);
  case Access::started:
    open_started(target);
    break;
  case Access::none:
    base::fail(MPI_ERR_RMA_SYNC,
               "no access epoch is open to rank {}; begin one with MPI_Win_fence, MPI_Win_start, "
               "MPI_Win_lock or MPI_Win_lock_all",
               target.rank);
  }
  check_alive(target);
  target.open = true;
  target.direct = short_way_ ? target.base : nullptr;
  touched_.push_back(&target);
}

void Window::check_alive(const Target& target) {
  if (!target.has_ended()) [[likely]]
    return;
  base::fail(MPI_ERR_PROC_ABORTED, "rank {} of the window (rank {} of MPI_COMM_WORLD) has ended",
             target.rank, target.peer->rank);
}

// One of the ranks that we have met and that has ended; null if none has.
const Target* Window::find_lost() const {
  const Target* found = nullptr;
  targets_.for_each([&](const Target& target) {
    if (found == nullptr && target.has_ended()) found = &target;
  });
  return found;
}

// Reads a word of a rank, for nothing but to see whether that fails.
void Window::ask_after(Target& target) {
  if (target.pending != 0 || target.rank == rank()) return;
  const Posted asked =
      target.atomics_network->read(*target.atomics_link, &target.answer, target.atomics_control,
                                   sizeof target.answer, target.cookie());
  if (asked == Posted::pending) ++target.pending; // busy: another time
}

// The access to one rank ends; it is in `touched_`.
void Window::close(Target& target) {
  target.open = false;
  target.direct = nullptr;
  if (touched_.back() == &target) [[likely]]
    touched_.pop_back();
  else
    std::erase(touched_, &target);
}

// Everything to all ranks is complete, here and there, and the epoch over.
void Window::close_all() {
  run_all_deferred();
  flush_touched();
  for (Target* const target : touched_) {
    target->open = false;
    target->direct = nullptr;
  }
  touched_.clear();
}

// --- Completion.

// Asks the network to tell when what was written has landed.
void Window::post_flush(Target& target) {
  const auto flush = [&](bool& unlanded, engine::Transport& network, engine::Link& link) {
    if (!unlanded) return;
    unlanded = false;
    post_counted(target, target, [&] { return network.flush(link, target.cookie()); });
  };
  flush(target.unlanded, *target.peer->transport, *target.link);
  if (target.atomics_network != nullptr)
    flush(target.atomics_unlanded, *target.atomics_network, *target.atomics_link);
}

// The same of the target, which has to answer.
void Window::flush_messages(Target& target) {
  if (!std::exchange(target.unserved, false)) return;
  if (messages_->flush(target.rank, target) == Posted::pending) ++target.pending;
}

void Window::wait_landed(Target& target) {
  post_flush(target);
  flush_messages(target);
  wait_idle(target);
}

// Nothing is under way any more to any of them.
void Window::wait_for_touched() {
  const auto is_idle = [](const Target* target) { return target->pending == 0; };
  waiting_.until([&] { return std::ranges::all_of(touched_, is_idle); });
}

void Window::flush_touched() {
  // Another thread may open one more, or unlock one, while this one waits.
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    post_flush(*touched_[i]);
    flush_messages(*touched_[i]);
  }
  wait_for_touched();
  for (const Target* const target : touched_)
    check_alive(*target);
  land_stores();
}

void Window::check_passive(const Target& target, const char* call) const {
  if (access_ == Access::all_locked || (access_ == Access::locks && target.open)) return;
  refuse_unlocked(call, target.rank);
}

void Window::check_passive(const char* call) const {
  if (access_ == Access::all_locked || access_ == Access::locks) return;
  base::fail(MPI_ERR_RMA_SYNC,
             "{} without a lock; it belongs between MPI_Win_lock (or lock_all) and the unlock",
             call);
}

inline void Window::look_now_and_then() {
  if (--calls_before_look_ != 0) [[likely]]
    return;
  calls_before_look_ = most_calls_before_look;
  waiting_.look();
}

void Window::check_request(const char* call) {
  check_passive(call);
  look_now_and_then();
}

void Window::flush(int rank) {
  Target& it = target(rank);
  check_passive(it, "MPI_Win_flush");
  if (it.pending != 0 || it.has_unlanded()) wait_landed(it);
  check_alive(it);
  land_stores();
  look_now_and_then();
}

void Window::flush_all() {
  check_passive("MPI_Win_flush_all");
  flush_touched();
  look_now_and_then();
}

void Window::flush_local(int rank) {
  Target& it = target(rank);
  check_passive(it, "MPI_Win_flush_local");
  wait_idle(it);
  check_alive(it);
  look_now_and_then();
}

void Window::flush_local_all() {
  check_passive("MPI_Win_flush_local_all");
  wait_for_touched();
  for (const Target* const it : touched_)
    check_alive(*it);
  look_now_and_then();
}

void Window::sync() {
  full_fence();
  waiting_.look();
}

// --- Fence.

void Window::fence(bool alone, bool access_follows) {
  check_no_access("MPI_Win_fence");
  if (exposed_) {
    base::fail(MPI_ERR_RMA_SYNC,
               "MPI_Win_fence inside an exposure epoch; MPI_Win_wait for MPI_Win_post is missing");
  }
  expect_messages();
  const End end(*this, AtEnd::copies);
  close_all();
  if (!alone) meet_all();
  access_ = access_follows ? Access::fence : Access::none;
}

// A fence is followed by another kind of epoch if nothing was accessed since.
void Window::check_no_access(const char* call) const {
  if (access_ == Access::none || access_ == Access::fence) return;
  base::fail(MPI_ERR_RMA_SYNC, "{} inside an access epoch; {} first", call,
             access_ == Access::started ? "call MPI_Win_complete"
             : access_ == Access::locks ? fmt::format("unlock the {} ranks that are locked", locks_)
                                        : "call MPI_Win_unlock_all");
}

void Window::check_no_fence_access(const char* call) const {
  if (access_ != Access::fence || touched_.empty()) return;
  base::fail(
      MPI_ERR_RMA_SYNC,
      "{} between two fences, when {} ranks were accessed; end that epoch with MPI_Win_fence", call,
      touched_.size());
}

// --- Locks.

void Window::lock(int rank, bool exclusive, bool unchecked) {
  if (no_locks) {
    base::fail(MPI_ERR_RMA_SYNC,
               "MPI_Win_lock on a window that was made with the info hint no_locks");
  }
  if (access_ != Access::locks) {
    if (access_ != Access::none) check_no_access("MPI_Win_lock");
    check_no_fence_access("MPI_Win_lock");
  }
  Target& it = target(rank);
  if (it.open) base::fail(MPI_ERR_RMA_SYNC, "rank {} is locked already by this process", rank);
  check_alive(it);
  if (!unchecked) take_lock(it, window_lock, exclusive, it.ticket);
  it.held = unchecked ? Held::assumed : exclusive ? Held::exclusive : Held::shared;
  access_ = Access::locks;
  ++locks_;
  it.open = true;
  it.direct = short_way_ ? it.base : nullptr;
  touched_.push_back(&it);
  if (unchecked || it.atomics_network != nullptr) full_fence(); // else the lock's word has done it
}

void Window::unlock(int rank) {
  look_now_and_then();
  Target& it = target(rank);
  if (access_ != Access::locks || !it.open) {
    base::fail(MPI_ERR_RMA_SYNC, "MPI_Win_unlock of rank {}, which this process has not locked",
               rank);
  }
  const bool checked = it.held != Held::assumed;
  const bool far = it.atomics_network != nullptr;
  // The lock's word lands behind data that go the same way, and then tells that they have landed:
  // an atomic always, the plain write for the readers behind us where writes land in order. Of what
  // is read it tells nothing.
  const bool tells = far && checked && it.atomics_network == it.peer->transport &&
                     !it.by_messages && !is_fetching(it) &&
                     (it.held == Held::shared || orders_writes(it));
  if (!tells && (it.pending != 0 || it.has_unlanded())) wait_landed(it);
  if (far || !checked) full_fence(); // else the lock's word does it
  stored_ = false;
  if (--locks_ == 0) access_ = Access::none;
  close(it);
  const bool exclusive = std::exchange(it.held, Held::nothing) == Held::exclusive;
  check_alive(it);
  if (checked) give_lock(it, window_lock, exclusive, it.ticket);
  if (!tells) return;
  it.unlanded = false;
  wait_idle(it);
  check_alive(it);
}

void Window::lock_all(bool unchecked) {
  if (no_locks) {
    base::fail(MPI_ERR_RMA_SYNC,
               "MPI_Win_lock_all on a window that was made with the info hint no_locks");
  }
  check_no_access("MPI_Win_lock_all");
  check_no_fence_access("MPI_Win_lock_all");
  access_ = Access::all_locked;
  unchecked_ = unchecked;
  // What the program may load and store without a call of ours.
  if (memory_is_ == Memory::together) {
    for (int each = 0; each < size(); ++each)
      opened(each);
  } else {
    opened(rank());
  }
  full_fence();
}

void Window::unlock_all() {
  look_now_and_then();
  if (access_ != Access::all_locked) {
    base::fail(MPI_ERR_RMA_SYNC, "MPI_Win_unlock_all without MPI_Win_lock_all");
  }
  flush_touched();
  access_ = Access::none;
  for (Target* const it : touched_) {
    it->open = false;
    it->direct = nullptr;
    if (std::exchange(it->held, Held::nothing) == Held::shared)
      give_lock(*it, window_lock, false, it->ticket);
  }
  touched_.clear();
}

} // namespace macadam::rma
