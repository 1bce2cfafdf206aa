// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "sim/scheduler.h"

namespace macadam::sim {

class Fiber;

// The processor that one simulated process has for itself: its own clock, which runs ahead of the
// world's while the process computes, and how the process waits. A process that runs in a fiber
// gives way to the others when it waits; one that runs outside of any (a unit test) lets the
// world go on from inside.
class Processor {
 public:
  explicit Processor(Scheduler& scheduler) : scheduler_(scheduler) {}
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  [[nodiscard]] Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] Time now() const { return time_ > scheduler_.now() ? time_ : scheduler_.now(); }
  // The processor is busy for so long with what the process does.
  void spend(Time cost) { time_ = now() + cost; }
  // Lets everything happen that happens before this processor's time.
  void synchronize() { pause(now(), false); }
  // The process computes; what steal() takes meanwhile comes on top.
  void compute(Time duration);
  // An interrupt or another thread has used the processor for so long.
  void steal(Time cost) { stolen_ += cost; }

  // Waits until wake() is called, or until a time. True if woken. A wake() before counts not.
  bool sleep(Time until) { return pause(until, true); }
  // The same, and whoever drives the world gets its turn in any case: it may have something for a
  // process although nothing else will happen.
  bool rest(Time until) { return pause(until, true, true); }
  // Ends a sleep().
  void wake();
  [[nodiscard]] bool asleep() const { return asleep_; }

  // The process ends where it stands, and is never resumed.
  void stop() {
    paused_ = asleep_ = false;
    ++pauses_;
  }

  // The fiber in which the process runs from now on; null for none.
  void run_in(Fiber* fiber) { fiber_ = fiber; }

 private:
  bool pause(Time until, bool wakeable, bool gives_way = false);
  void resume(std::uint32_t pause_number);

  Scheduler& scheduler_;
  Fiber* fiber_ = nullptr;
  Time time_ = 0;
  Time stolen_ = 0;
  std::uint32_t pauses_ = 0; // an event that ends an earlier pause is stale
  bool paused_ = false;
  bool asleep_ = false;
  bool woken_ = false;
};

} // namespace macadam::sim
