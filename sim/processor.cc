// SPDX-License-Identifier: BSD-3-Clause
#include "sim/processor.h"

#include "sim/fiber.h"

namespace macadam::sim {

void Processor::compute(Time duration) {
  stolen_ = 0;
  spend(duration);
  synchronize();
  while (stolen_ > 0) {
    const Time more = stolen_;
    stolen_ = 0;
    spend(more);
    synchronize();
  }
}

bool Processor::pause(Time until, bool wakeable, bool gives_way) {
  if (until != never && scheduler_.next() > until &&
      !gives_way) { // nothing can happen before: no need to give way
    scheduler_.advance(until);
    return false;
  }
  woken_ = false;
  asleep_ = wakeable;
  if (fiber_ != nullptr) {
    paused_ = true;
    const std::uint32_t number = ++pauses_;
    if (until != never) scheduler_.at(until, [this, number] { resume(number); });
    while (paused_)
      Fiber::suspend();
  } else {
    while (!woken_ && scheduler_.next() <= until && scheduler_.step()) {
    }
    if (!woken_ && until != never) scheduler_.advance(until);
  }
  asleep_ = false;
  return woken_;
}

void Processor::wake() {
  if (!asleep_) return;
  asleep_ = false;
  woken_ = true;
  if (fiber_ != nullptr)
    scheduler_.at(scheduler_.now(), [this, number = pauses_] { resume(number); });
}

void Processor::resume(std::uint32_t pause_number) {
  if (!paused_ || pause_number != pauses_) return;
  paused_ = false;
  fiber_->resume();
}

} // namespace macadam::sim
