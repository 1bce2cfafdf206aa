// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "base/fence.h"
#include "rma/window.h"

#include <atomic>
#include <utility>

// What the files of Window share.
namespace macadam::rma {

using base::full_fence;

// A full fence, if something was stored; costs nothing otherwise. Between a flush and what follows
// it, and around accesses to the window's memory by the program itself.
inline void Window::land_stores() {
  if (!stored_) return base::ordering_fence();
  stored_ = false;
  full_fence();
}

// Data written to the target are there before a word that is written behind them.
inline bool Window::orders_writes(const Target& target) {
  return target.by_messages || target.peer->transport->limits().orders_writes;
}

// Gets from the target are under way. A word that is written behind them may be there before they
// have been answered, whatever the order of writes: it must not tell that the memory is free.
inline bool Window::is_fetching(Target& target) {
  target.fetching = target.fetching && target.pending != 0;
  return target.fetching;
}

// Until no operation with the target that uses our memory is under way.
inline void Window::wait_idle(const Target& target) {
  if (target.pending != 0) waiting_.until([&] { return target.pending == 0; });
}

// Held while a call does with a target what takes several steps, of which it waits for some:
// another thread of this process that comes meanwhile waits too. Around waits for another process
// only where that thread would have to wait for the same.
class Window::Turn {
 public:
  Turn(Window& window, Target& target) : target_(target) {
    if (target.busy) [[unlikely]]
      window.waiting_.until_seen([&] { return !target.busy; });
    target.busy = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { target_.busy = false; }

 private:
  Target& target_;
};

// While this process is at the end of an epoch.
class Window::End {
 public:
  End(Window& window, AtEnd where) : window_(window) { window.tell_at_end(where); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() { window_.tell_at_end(AtEnd::no); }

 private:
  Window& window_;
};

// A wait for what others write. An operation on a rank that has ended fails: so a long wait reads
// from the others now and then, which costs them nothing but a read by the network.
class Window::FailureProbe {
 public:
  // Whether `target` has ended; asks after it now and then.
  bool finds_lost(Window& window, Target& target) {
    if (target.has_ended()) return true;
    if (is_due(target.atomics_network)) window.ask_after(target);
    return false;
  }
  // True every `pause`, from the first call on.
  bool is_due(const engine::Transport* network) {
    if (network == nullptr) return false; // neighbours only: their launcher tells
    const double now = network->now();
    if (next_ != 0 && now < next_) return false;
    return std::exchange(next_, now + pause) != 0;
  }

 private:
  static constexpr double pause = 0.5; // seconds
  double next_ = 0;
};

// Posts an operation to a network. When there is no room the caller makes progress until there is:
// so however many operations an epoch has, what is under way is bounded by the network.
template <class Post>
engine::Posted Window::posted(Target& target, Post&& post_it) {
  check_alive(target);
  engine::Posted result = post_it();
  if (result == engine::Posted::busy) [[unlikely]] {
    waiting_.until([&] {
      result = post_it();
      return result != engine::Posted::busy || target.peer->state == engine::PeerState::failed;
    });
    check_alive(target);
  }
  if (result == engine::Posted::refused) [[unlikely]]
    base::fail(MPI_ERR_OTHER,
               "the memory of rank {} of the window cannot be reached: it is shorter than the "
               "window says, or is memory that only its process can access; or the system has no "
               "room to map it, or forbids what it allowed before (which the report says)",
               target.rank);
  return result;
}

// The same; `waiter` counts it while it is under way.
template <class Post>
void Window::post_counted(Target& target, Waiter& waiter, Post&& post_it) {
  if (posted(target, post_it) == engine::Posted::pending) waiter.on_posted();
}

// The same for an operation that the caller waits for.
template <class Post>
void Window::run_once(Target& target, Post&& post_it) {
  add_to_batch(target, post_it);
  wait_for_batch(target);
}

// Several: each in the batch of its target, then a wait for all.
template <class Post>
void Window::add_to_batch(Target& target, Post&& post_it) {
  post_counted(target, target.batch, [&] { return post_it(target.batch.cookie()); });
}

inline void Window::wait_for_batch(Target& target) {
  if (target.batch.pending != 0) waiting_.until([&] { return target.batch.pending == 0; });
  if (!target.batch.ok) target.failed = true;
  check_alive(target);
}

} // namespace macadam::rma
