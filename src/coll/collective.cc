// SPDX-License-Identifier: BSD-3-Clause
#include "coll/collective.h"

#include <utility>

namespace macadam::coll {

void Collective::begin() noexcept {
  complete_ = false;
  error_ = nullptr;
  try {
    if (boards != nullptr) board = boards->begin(tag);
    task_ = run_(*this);
  } catch (...) {
    task_ = Task();
    error_ = std::current_exception();
    finish();
    return;
  }
  if (task_.done())
    finish();
  else
    task_.on_end([](Collective& self) { self.finish(); }, *this);
}

void Collective::finish() noexcept {
  if (!error_) error_ = task_.error();
  task_ = Task();
  Collective* next = std::exchange(next_, nullptr);
  if (sequence_ != nullptr) {
    Collective*& last = sequence_->last_[static_cast<std::size_t>(tag)];
    if (last == this) last = nullptr;
    sequence_ = nullptr;
  }
  complete_ = true;
  if (continuation != nullptr) continuation(*this, argument); // may free this
  if (next != nullptr) next->begin();
}

// Only these are counted: of all sorts together programs exist that differ in the order.
void Sequence::start_blocking(Collective& collective) noexcept {
  collective.frequent = blocking_ == many;
  if (blocking_ != many) ++blocking_;
  start(collective, 0);
}

void Sequence::keep(Collective& collective) {
  persistent_.push_back(&collective);
  collective.tag = next_own_++;
}

bool Sequence::is_running(const Collective& collective) {
  return !collective.complete();
}

void Sequence::start(Collective& collective, std::uint32_t tag) noexcept {
  collective.tag = static_cast<std::int32_t>(tag);
  collective.sequence_ = this;
  Collective* before = std::exchange(last_[tag], &collective);
  if (before == nullptr) [[likely]] {
    collective.begin();
  } else {
    collective.complete_ = false;
    before->next_ = &collective;
  }
}

} // namespace macadam::coll
