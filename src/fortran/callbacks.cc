// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/callbacks.h"

#include <mutex>
#include <unordered_set>

namespace macadam::fortran {

namespace {

// The addresses handed out by box().
struct Boxes {
  std::mutex mutex;
  std::unordered_set<void*> all;
};
Boxes boxes;

bool is_box(void* attribute) {
  const std::lock_guard lock(boxes.mutex);
  return boxes.all.contains(attribute);
}

} // namespace

void* box(MPI_Aint value) {
  void* attribute = new MPI_Aint(value);
  const std::lock_guard lock(boxes.mutex);
  boxes.all.insert(attribute);
  return attribute;
}

void unbox(void* attribute) {
  const std::lock_guard lock(boxes.mutex);
  if (boxes.all.erase(attribute) != 0) delete static_cast<MPI_Aint*>(attribute);
}

MPI_Aint attribute_value(void* attribute) {
  return is_box(attribute) ? *static_cast<MPI_Aint*>(attribute)
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
