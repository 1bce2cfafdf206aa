// SPDX-License-Identifier: BSD-3-Clause
// Long accesses of a neighbour's memory that is not mapped, in epochs that the target ends too. A
// message is up to three times as fast as a copy by the kernel, as both processes copy, but only
// where the target is there to serve it, and has nothing of its own to copy; the kernel needs
// nobody, so a target that computes meanwhile loses nothing. Who of both comes first is known at
// the end of the epoch, so such accesses wait for it.
#include "rma/post.h"
#include "rma/window.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace macadam::rma {

namespace {

// Seconds that the kernel takes for a byte, about; and the part of that for which an origin waits
// for a target that may be about to come.
constexpr double kernel_takes = 60e-12;
constexpr double worth_waiting = 1.0 / 16;

} // namespace

void Window::tell_at_end(AtEnd where) {
  auto* const word = reinterpret_cast<std::uint8_t*>(control_ + offsetof(Control, at_end));
  std::atomic_ref(*word).store(at_end_word(where), std::memory_order_release);
}

std::uint8_t Window::at_end_word(AtEnd where) const {
  return static_cast<std::uint8_t>(at_end_kinds * fences_ + static_cast<std::uint32_t>(where));
}

// Of this epoch's.
AtEnd Window::at_end(const Target& target) const {
  if (target.control_here == nullptr) return AtEnd::no;
  auto* const word =
      reinterpret_cast<std::uint8_t*>(target.control_here + offsetof(Control, at_end));
  const std::uint8_t found = std::atomic_ref(*word).load(std::memory_order_acquire);
  for (const AtEnd where : {AtEnd::waits, AtEnd::copies})
    if (found == at_end_word(where)) return where;
  return AtEnd::no;
}

void Window::run_deferred(const Deferred& what, bool by_message) {
  ++(by_message ? counters_.by_target : counters_.by_network);
  Target& target = *what.target;
  target.fetching |= what.direction == Direction::read;
  if (by_message)
    move_by_message(target, what.direction, what.ours, what.to.place, what.bytes, target);
  else
    move_segment(target, what.direction, what.ours, what.to, 0, what.bytes, target);
}

// Of the access epoch that this call ends, by messages to those that are there, or come soon, and
// have nothing else to do; else by the kernel. (Other threads may run meanwhile, and end an
// exposure epoch; none of them touches what is deferred.)
void Window::run_all_deferred() {
  std::vector<Deferred> left = std::exchange(deferred_, {});
  if (!left.empty()) {
    const engine::Transport& network = engine_.networks().nearest();
    double bytes = 0;
    for (const Deferred& each : left)
      bytes += static_cast<double>(each.bytes);
    const double until = network.now() + bytes * kernel_takes * worth_waiting;
    for (;;) {
      const auto known = std::ranges::stable_partition(
          left, [&](const Deferred& each) { return at_end(*each.target) == AtEnd::no; });
      for (const Deferred& each : known)
        run_deferred(each, at_end(*each.target) != AtEnd::copies);
      left.erase(known.begin(), known.end());
      if (left.empty() || network.now() >= until) break;
      waiting_.look();
    }
    for (const Deferred& each : left)
      run_deferred(each, false);
  }
  tell_at_end(AtEnd::waits);
}

} // namespace macadam::rma
