// SPDX-License-Identifier: BSD-3-Clause
#include "sim/charges.h"

#include "base/copy.h"
#include "sim/rank.h"

#include <cstring>

namespace macadam::base {

// In place of those of src/base/copy.cc.
void copy_many(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  touched(bytes);
  if (sim::Rank* const rank = sim::Rank::current()) rank->copied_to(to);
}

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
  copy_many(to, from, bytes);
}

void touched(std::size_t bytes) {
  if (sim::Rank* const rank = sim::Rank::current())
    rank->charge(sim::transfer_time(bytes, rank->model().copy_mb_per_s));
}

} // namespace macadam::base

namespace macadam::sim {

void ChargedSink::charge() noexcept {
  if (Rank* const rank = Rank::current()) rank->charge(from_ns(rank->model().matching_ns));
}

void end_if_killed() {
  Rank::current()->end_if_killed();
}

Away::Away(const void* place) : rank_(Rank::current()) {
  if (rank_ != nullptr) rank_->leave_program(place);
}

Away::~Away() {
  if (rank_ != nullptr) rank_->enter_program();
}

Call::Call(const void* place) : Away(place) {
  if (rank_ != nullptr) rank_->charge(from_ns(rank_->model().call_ns));
}

} // namespace macadam::sim
