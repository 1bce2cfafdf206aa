// SPDX-License-Identifier: BSD-3-Clause
#include "boot/streams.h"

#include <cstdio>

// A function of gfortran's runtime, if the program has it: flushes all units if `unit` is null.
extern "C" [[gnu::weak]] void _gfortran_flush_i4(int* unit);

namespace macadam::boot {

void flush_streams() {
  if (_gfortran_flush_i4 != nullptr) _gfortran_flush_i4(nullptr);
  std::fflush(nullptr);
}

} // namespace macadam::boot
