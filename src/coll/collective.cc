// SPDX-License-Identifier: BSD-3-Clause
#include "coll/collective.h"

#include "base/error.h"

#include <new>
#include <utility>

namespace macadam::coll {
namespace {

std::int32_t error_class_of(const std::exception_ptr& error) {
  if (!error) [[likely]] return MPI_SUCCESS;
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& e) {
    return e.error_class;
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

}  // namespace

void Collective::begin() noexcept {
  complete = false;
  error_ = nullptr;
  try {
    task_ = run_(*this);
  } catch (...) {
    task_ = Task();
    error_ = std::current_exception();
    finish();
    return;
  }
  if (task_.done()) finish();
  else task_.on_end([](Collective& self) { self.finish(); }, *this);
}

void Collective::finish() {
  if (!error_) error_ = task_.error();
  status.error = error_class_of(error_);
  task_ = Task();
  Collective* next = std::exchange(next_, nullptr);
  if (sequence_ != nullptr) {
    Collective*& last = sequence_->last_[static_cast<std::size_t>(tag)];
    if (last == this) last = nullptr;
    sequence_ = nullptr;
  }
  complete = true;
  if (continuation != nullptr) continuation(*this, argument);  // may free this
  if (next != nullptr) next->begin();
}

void Sequence::start(Collective& collective) noexcept {
  const std::uint32_t tag = started_++ % tags;
  collective.tag = static_cast<std::int32_t>(tag);
  collective.sequence_ = this;
  Collective* before = std::exchange(last_[tag], &collective);
  if (before == nullptr) [[likely]] {
    collective.begin();
  } else {
    collective.complete = false;
    before->next_ = &collective;
  }
}

}  // namespace macadam::coll
