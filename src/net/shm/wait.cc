// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/wait.h"

#include "base/relax.h"

#include <algorithm>

namespace macadam::net::shm {
namespace {

// Polls before a wait looks at the clock for the first time: a microsecond or two, in which most
// waits end.
constexpr unsigned blind_polls = 32;
// Where every process has a core: how long to spin by default, and how long to yield after that.
constexpr double default_spin = 20e-6;
constexpr double yield_time = 1e-3;
// About what a sleep and a wake-up take: so long a wait stays awake while yields cost too much, or
// more threads want to run than there are cores. One that yields alone on its core keeps them from
// it, as two that share another core look settled there to the scheduler.
constexpr double sleep_time = 50e-6;
// Between two looks whether they are more.
constexpr double time_between_looks = 1e-3;
// A wait that a yield or two ended: the one it waited for shares this core, whatever the count of
// cores says. The next wait yields after this part of the time.
constexpr unsigned few_yields = 2;
constexpr double shorter_spin = 32;
// Between two times that a process leaves a core: the scheduler may have had reasons.
constexpr double time_between_moves = 10e-3;
// Where they share cores, how much longer a wait yields in a transfer, since to sleep and be woken
// for each fragment takes as long as to copy it; and how long it leaves to others what it may copy.
constexpr double transfer_time = 200e-6;
// How long what was seen of other programs says something: twice as long as there are no yields
// then.
constexpr double time_wanted = 200e-3;
// Where they share cores, between two looks whether this one has more than its share.
constexpr unsigned yields_between_looks = 128;
constexpr unsigned longest_sleep_without_barrier_us = 1000;

void count(std::uint64_t& counter) {
  std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
}

} // namespace

Waiter::Waiter(System& system, SegmentHeader& own, SharedCores shared, std::int64_t spin_us)
    : system_(system), own_(own), shared_(shared),
      spin_seconds_(spin_us >= 0 ? 1e-6 * static_cast<double>(spin_us)
                                 : (oversubscribed() ? 0 : default_spin)),
      has_barrier_(system.enter_barriers()) {}

bool Waiter::idle(unsigned fruitless, unsigned longest_us, bool in_transfer) {
  if (!waiting()) set_waiting(true);
  if (has_core() ? spin_or_yield(fruitless) : yield_to_others(fruitless, in_transfer)) return false;
  // Announce, let the caller poll once more, sleep: `fruitless` counts the polls between.
  if (fruitless % 2 == 0) {
    announce_sleep();
    return true;
  }
  sleep(longest_us);
  return false;
}

bool Waiter::spin_or_yield(unsigned fruitless) {
  if (fruitless == 1) learn();
  if (fruitless < blind_polls) {
    base::relax();
    return true;
  }
  const double time = system_.now();
  const bool yields = !cost_.is_too_high([time] { return time; });
  if (fruitless == blind_polls) {
    began_.store(time, std::memory_order_relaxed);
    if (!yields) leave_crowded_core(); // where a wake-up may have put it
  }
  const double waited = time - began_.load(std::memory_order_relaxed);
  double spin = sleep_time;
  if (yields)
    spin =
        yields_help_.load(std::memory_order_relaxed) ? spin_seconds_ / shorter_spin : spin_seconds_;
  if (waited < spin) {
    system_.relax();
    return true;
  }
  if (!yields || waited >= spin + yield_time) return false;
  if (waited >= sleep_time && is_crowded(time)) return false;
  yield();
  return true;
}

bool Waiter::yield_to_others(unsigned fruitless, bool in_transfer) {
  const bool enough = fruitless >= longest_yielding_.load(std::memory_order_relaxed);
  if (!enough)
    began_.store(0, std::memory_order_relaxed);
  else if (!in_transfer || !is_within(transfer_time))
    return false;
  return yield_unless_costly();
}

bool Waiter::yield_unless_costly() {
  if (cost_.is_too_high([this] { return system_.now(); })) return false;
  if (std::atomic_ref(counts_.yields).load(std::memory_order_relaxed) % yields_between_looks == 0)
    leave_crowded_core();
  yield();
  return true;
}

// Whether more threads want to run than there are cores, or did not long ago.
bool Waiter::is_crowded(double now) {
  if (now - looked_.load(std::memory_order_relaxed) > time_between_looks) {
    looked_.store(now, std::memory_order_relaxed);
    crowded_.store(system_.running_threads() > system_.cores(), std::memory_order_relaxed);
  }
  return crowded_.load(std::memory_order_relaxed);
}

// Whether no more time has gone by since the present wait first looked at the clock.
bool Waiter::is_within(double seconds) {
  const double time = system_.now();
  if (began_.load(std::memory_order_relaxed) == 0) began_.store(time, std::memory_order_relaxed);
  return time - began_.load(std::memory_order_relaxed) <= seconds;
}

void Waiter::begin_wait() {
  set_waiting(true);
  if (!has_core()) began_.store(0, std::memory_order_relaxed);
}

// Yields for some time only, as each yield may take a slice.
void Waiter::give_turn() {
  if (is_within(transfer_time))
    pass_core();
  else
    base::relax();
}

void Waiter::pass_core() {
  if (has_core() || !yield_unless_costly()) base::relax();
}

// From how the last wait ended.
void Waiter::learn() {
  const unsigned yields = yields_.exchange(0, std::memory_order_relaxed);
  const bool help = yields > 0 && yields <= few_yields;
  yields_help_.store(help, std::memory_order_relaxed);
  if (help && !oversubscribed()) leave_crowded_core();
}

bool YieldCost::add_slice(double before, double after) {
  closely_.store(measured_closely, std::memory_order_relaxed);
  const bool in_window = before - began_.load(std::memory_order_relaxed) <= window;
  const double lost = in_window ? lost_.load(std::memory_order_relaxed) + after - before : 0;
  const bool much = lost >= most_lost;
  if (!in_window || much) began_.store(after, std::memory_order_relaxed);
  lost_.store(much ? 0 : lost, std::memory_order_relaxed);
  return much;
}

void Waiter::meet(const SegmentHeader& neighbour, bool of_lower_rank) {
  const unsigned met = met_.load(std::memory_order_relaxed);
  if (met == most_neighbours) return;
  neighbours_[met] = {&neighbour, of_lower_rank};
  met_.store(met + 1, std::memory_order_release);
}

// Whether more threads want to run than processes of this job are awake, which share cores: those
// of other programs, or of processes that have several. Nobody knows, and so none do, where the job
// may not use all cores of the machine: the system counts the threads on all. Neighbours that this
// one has not met, or has no room for, count as awake.
bool Waiter::others_want_a_core() {
  if (system_.cores() != shared_.cores) return false;
  const unsigned met = met_.load(std::memory_order_acquire);
  unsigned awake = std::max(shared_.processes, 1 + met);
  for (unsigned i = 0; i < met; ++i)
    awake -= sleeps(*neighbours_[i].header) ? 1 : 0;
  return system_.running_threads() > awake;
}

void Waiter::leave_crowded_core() {
  const unsigned here = system_.core();
  std::array<unsigned, most_neighbours> cores; // of those that wait
  unsigned waiting = 0;
  unsigned before_us = 0; // of them, on this one
  for (unsigned i = 0; i < met_.load(std::memory_order_acquire); ++i) {
    const SegmentHeader& neighbour = *neighbours_[i].header;
    const Waiting its = seen(neighbour);
    if (!its.is || neighbour.asleep.load(std::memory_order_relaxed) != 0) continue;
    cores[waiting++] = its.core;
    if (its.core == here && neighbours_[i].of_lower_rank) ++before_us;
  }
  if (before_us < shared_.each()) return;
  const double time = system_.now();
  double last = left_.load(std::memory_order_relaxed);
  if (time - last < time_between_moves ||
      !left_.compare_exchange_strong(last, time, std::memory_order_relaxed)) // another thread's
    return;
  if (oversubscribed() && others_want_a_core()) return;
  std::array<unsigned, most_neighbours> full;
  unsigned count_full = 0;
  const std::span taken(cores.data(), waiting);
  for (const unsigned core : taken) {
    if (std::ranges::count(taken, core) >= shared_.each()) full[count_full++] = core;
  }
  if (!system_.leave(here, {full.data(), count_full})) return;
  count(counts_.cores_left);
  set_waiting(true); // on another core
}

void Waiter::resume() {
  set_waiting(false);
  rouse(); // no peer need ring any more; a thread of ours that sleeps announces itself again
}

void Waiter::pause() {
  if (waiting()) own_.waiting.fetch_or(Waiting::pause_bit, std::memory_order_release);
  waiting_.store(false, std::memory_order_relaxed);
  rouse();
}

void Waiter::yield() {
  count(counts_.yields);
  yields_.fetch_add(1, std::memory_order_relaxed);
  if (!cost_.is_due()) [[likely]]
    return system_.yield();
  const double before = system_.now();
  system_.yield();
  const double after = system_.now();
  if (cost_.add(before, after) && (!oversubscribed() || others_keep_wanting(after)))
    cost_.avoid(after);
}

// Not by one look, unless they did lately: what the system counts is of one moment, in which a
// neighbour that has said that it sleeps may not do so yet, and anybody may run for a short time.
bool Waiter::others_keep_wanting(double now) {
  constexpr unsigned enough = 2;
  const bool want = others_want_a_core();
  const bool lately = now - wanted_at_.load(std::memory_order_relaxed) <= time_wanted;
  const unsigned before = lately ? wanted_.load(std::memory_order_relaxed) : 0;
  const unsigned after = want ? std::min(before + 1, enough) : before - std::min(before, 1U);
  wanted_.store(after, std::memory_order_relaxed);
  if (want) wanted_at_.store(now, std::memory_order_relaxed);
  return want && after == enough;
}

void Waiter::announce_sleep() {
  own_.asleep.store(1, std::memory_order_seq_cst);
  if (has_barrier_) system_.pass_barrier();
}

void Waiter::sleep(unsigned longest_us) {
  if (!has_barrier_) longest_us = std::min(longest_us, longest_sleep_without_barrier_us);
  count(counts_.sleeps);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  system_.sleep(own_.asleep, 1, longest_us);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  slept_.store(true, std::memory_order_relaxed);
}

bool Waiter::ring_bell(SegmentHeader& receiver) const {
  if (receiver.asleep.exchange(0, std::memory_order_seq_cst) == 0) return false;
  system_.wake(receiver.asleep);
  return true;
}

void Waiter::rouse_sleepers() {
  own_.asleep.store(0, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) system_.wake(own_.asleep);
}

} // namespace macadam::net::shm
