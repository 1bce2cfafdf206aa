// SPDX-License-Identifier: BSD-3-Clause
#include "sim/scheduler.h"

#include "sim/random.h"

#include <algorithm>

namespace macadam::sim {

void Scheduler::at(Time time, Action action) {
  std::uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(actions_.size());
    actions_.push_back(action);
  } else {
    slot = free_.back();
    free_.pop_back();
    actions_[slot] = action;
  }
  const std::uint64_t number = made_++;
  const std::uint64_t order = ties_ == Ties::in_order ? number : scramble(seed_ ^ number);
  heap_.push_back({std::max(time, now_), order, slot});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool Scheduler::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const Entry entry = heap_.back();
  heap_.pop_back();
  advance(entry.time);
  Action action = actions_[entry.slot]; // a copy: the action may make events
  free_.push_back(entry.slot);
  action();
  return true;
}

void Scheduler::run_until(Time time) {
  while (next() <= time)
    step();
  advance(time);
}

} // namespace macadam::sim
