// SPDX-License-Identifier: BSD-3-Clause
// Post, start, complete and wait (Jiang et al., section "Synchronization"): the target writes into
// the origin's vector that it has posted, the origin into the target's that it has completed, by
// RDMA, or by a message where data went by messages; each waits for its own memory to change. A
// completion is written behind the data where writes land in order (Limits::orders_writes), and
// else once they have landed, and in any case once gets are answered: so it is never seen before
// them. The barrier of a fence comes when everything has landed.
#include "base/error.h"
#include "rma/messages.h"
#include "rma/post.h"
#include "rma/window.h"

#include <algorithm>
#include <atomic>

namespace macadam::rma {

// The value that another has written here.
Counter Window::counter(std::size_t offset) const {
  auto* const counter = reinterpret_cast<Counter*>(control_ + offset);
  return std::atomic_ref(*counter).load(std::memory_order_acquire);
}

// Behind the data, whichever way they go.
void Window::send_notification(Target& target, std::size_t offset, Counter value) {
  if (target.by_messages || target.unserved) return messages_->tell(target.rank, offset, value);
  if (target.control_here != nullptr) {
    auto* const counter = reinterpret_cast<Counter*>(target.control_here + offset);
    std::atomic_ref(*counter).store(value, std::memory_order_release);
    return;
  }
  target.counter_value = value;
  target.unlanded = true;
  run_once(target, [&](std::uint64_t cookie) {
    return target.peer->transport->write(*target.link, &target.counter_value,
                                         {target.control.address + offset, target.control.key},
                                         sizeof value, cookie);
  });
}

// In step k a rank speaks for the 2^k ranks before it and itself to the one 2^k after it: log2(n)
// writes. In each step a rank hears of one other, so a counter for a step is enough.
void Window::meet_all() {
  const auto now = static_cast<Counter>(++fences_);
  const Marked marked(in_fence_, true);
  const int n = size();
  for (int k = 0, distance = 1; distance < n; ++k, distance *= 2) {
    const std::size_t come = Layout::fence(k, fences_);
    send_notification(target((rank() + distance) % n), come, now);
    const int from = (rank() + n - distance) % n;
    Target& it = target(from);
    FailureProbe failure_probe;
    waiting_.until_seen(
        [&] { return counter(come) == now || failure_probe.finds_lost(*this, it); });
    check_alive(it);
  }
}

void Window::post(std::vector<int> origins, bool unchecked) {
  if (exposed_) {
    base::fail(MPI_ERR_RMA_SYNC,
               "MPI_Win_post inside an exposure epoch; MPI_Win_wait for the one before is missing");
  }
  for (const int origin : origins) {
    Target& it = target(origin);
    if (!unchecked) send_notification(it, layout_.posted(rank()), ++it.posts_sent);
  }
  expect_messages();
  exposed_ = true;
  origins_ = std::move(origins);
}

void Window::start(std::vector<int> targets, bool unchecked) {
  check_no_access("MPI_Win_start");
  check_no_fence_access("MPI_Win_start");
  expect_messages();
  access_ = Access::started;
  unchecked_ = unchecked;
  targets_started_ = std::move(targets);
}

// The first access in an epoch of MPI_Win_start waits for the target's post.
void Window::open_started(Target& target) {
  if (std::ranges::find(targets_started_, target.rank) == targets_started_.end()) {
    base::fail(MPI_ERR_RMA_SYNC, "rank {} is not in the group of MPI_Win_start, which has {} ranks",
               target.rank, targets_started_.size());
  }
  if (unchecked_) return;
  const Marked marked(awaits_post_of_, target.rank);
  FailureProbe failure_probe;
  waiting_.until_seen([&] {
    return counter(layout_.posted(target.rank)) != target.posts_used ||
           failure_probe.finds_lost(*this, target);
  });
  ++target.posts_used;
}

void Window::complete() {
  if (access_ != Access::started) {
    base::fail(MPI_ERR_RMA_SYNC, "MPI_Win_complete without MPI_Win_start");
  }
  const End end(*this, AtEnd::copies);
  run_all_deferred();
  for (const int each : targets_started_) {
    Target& it = opened(each);
    if (!orders_writes(it) || it.unserved) post_flush(it);
  }
  for (const int each : targets_started_) {
    Target& it = target(each);
    if (!orders_writes(it) || it.unserved || is_fetching(it)) wait_idle(it);
    send_notification(it, layout_.completed(rank()), ++it.completions_sent);
    it.unserved = false;
  }
  access_ = Access::none;
  for (Target* const it : touched_) {
    wait_idle(*it);
    it->open = false;
    it->direct = nullptr;
    check_alive(*it);
  }
  touched_.clear();
}

bool Window::has_completed(int origin, FailureProbe& failure_probe) {
  Target& it = target(origin);
  return counter(layout_.completed(origin)) != it.completions_used ||
         failure_probe.finds_lost(*this, it);
}

void Window::check_exposed(const char* call) const {
  if (!exposed_) base::fail(MPI_ERR_RMA_SYNC, "{} without MPI_Win_post", call);
}

void Window::end_exposure() {
  exposed_ = false;
  for (const int origin : origins_) {
    ++target(origin).completions_used;
    check_alive(target(origin));
  }
  origins_.clear();
}

void Window::wait() {
  check_exposed("MPI_Win_wait");
  const Marked marked(awaits_completions_, true);
  const End end(*this, AtEnd::waits);
  for (const int origin : origins_) {
    FailureProbe failure_probe;
    waiting_.until_seen([&] { return has_completed(origin, failure_probe); });
  }
  end_exposure();
}

Window::Standing Window::standing() const {
  Standing standing{fences_, in_fence_, awaits_lock_of_, awaits_post_of_, {}};
  if (awaits_completions_)
    for (const int origin : origins_)
      if (counter(layout_.completed(origin)) == targets_.find(origin)->completions_used)
        standing.await_complete_of.push_back(origin);
  return standing;
}

bool Window::test() {
  check_exposed("MPI_Win_test");
  waiting_.look();
  FailureProbe failure_probe;
  const auto done = [&](int origin) { return has_completed(origin, failure_probe); };
  if (!std::ranges::all_of(origins_, done)) return false;
  end_exposure();
  return true;
}

} // namespace macadam::rma
