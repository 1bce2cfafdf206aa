// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "datatype/basic.h"

#include <mpi.h>

#include <cstdint>

namespace macadam::datatype {

// Sums and products of a few counts are taken in 128 bits, where they cannot overflow, and checked
// once when they become a count again.
using Wide = Int128;

// Throws MPI_ERR_TYPE; `what` is "size", "lower bound", ... of a type.
inline MPI_Count narrow(Wide value, const char* what) {
  if (value > INT64_MAX || value < INT64_MIN) {
    base::fail(MPI_ERR_TYPE,
               "the {} of the datatype is beyond 2^63 - 1 bytes; use smaller counts, "
               "blocklengths or displacements",
               what);
  }
  return static_cast<MPI_Count>(value);
}

} // namespace macadam::datatype
