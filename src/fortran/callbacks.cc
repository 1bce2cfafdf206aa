// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/callbacks.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace macadam::fortran {

namespace {

// The addresses handed out by box(). One whose attribute is removed stays until the calls are over
// that may have got it before: those that have begun earlier.
struct Boxes {
  std::mutex mutex;
  std::unordered_map<void*, bool> all; // whether the attribute is still there
  std::deque<void*> removed;           // the others, the oldest first
  std::uint64_t removals = 0;
  std::multiset<std::uint64_t> getting; // `removals` when each of the calls began

  void sweep() {
    const std::uint64_t over = getting.empty() ? removals : *getting.begin();
    for (; removed.size() > removals - over; removed.pop_front()) {
      all.erase(removed.front());
      delete static_cast<MPI_Aint*>(removed.front());
    }
  }
};
Boxes boxes;

} // namespace

void* box(MPI_Aint value) {
  void* attribute = new MPI_Aint(value);
  const std::lock_guard lock(boxes.mutex);
  boxes.all.emplace(attribute, true);
  return attribute;
}

void unbox(void* attribute) {
  const std::lock_guard lock(boxes.mutex);
  const auto row = boxes.all.find(attribute);
  if (row == boxes.all.end() || !std::exchange(row->second, false)) return;
  boxes.removed.push_back(attribute);
  ++boxes.removals;
  boxes.sweep();
}

Getting::Getting() {
  const std::lock_guard lock(boxes.mutex);
  began_ = boxes.getting.insert(boxes.removals);
}

Getting::~Getting() {
  const std::lock_guard lock(boxes.mutex);
  boxes.getting.erase(began_);
  boxes.sweep();
}

MPI_Aint attribute_value(void* attribute) {
  const std::lock_guard lock(boxes.mutex);
  return boxes.all.contains(attribute) ? *static_cast<MPI_Aint*>(attribute)
                                       : reinterpret_cast<MPI_Aint>(attribute);
}

MPI_Aint attribute_value(int keyval, void* attribute) {
  switch (keyval) {
  case MPI_TAG_UB:
  case MPI_IO:
  case MPI_HOST:
  case MPI_WTIME_IS_GLOBAL:
  case MPI_APPNUM:
  case MPI_LASTUSEDCODE:
  case MPI_UNIVERSE_SIZE:
  case MPI_WIN_DISP_UNIT:
  case MPI_WIN_CREATE_FLAVOR:
  case MPI_WIN_MODEL:
    return *static_cast<int*>(attribute);
  case MPI_WIN_SIZE:
    return *static_cast<MPI_Aint*>(attribute);
  default: // also MPI_WIN_BASE, an address in both languages
    return attribute_value(attribute);
  }
}

} // namespace macadam::fortran
