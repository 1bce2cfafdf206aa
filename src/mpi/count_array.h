// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <cstddef>
#include <type_traits>

namespace macadam::mpi {

// An array of counts or displacements that a caller passed, of int or of MPI_Count (MPI_Aint is the
// same type). Does not own it. May be null where the argument is not significant.
struct CountArray {
  static_assert(std::is_same_v<MPI_Count, MPI_Aint>, "arrays of both are read alike");

  [[nodiscard]] MPI_Count operator[](std::size_t i) const {
    return large ? static_cast<const MPI_Count*>(data)[i] : static_cast<const int*>(data)[i];
  }
  explicit operator bool() const { return data != nullptr; }

  const void* data = nullptr;
  bool large = false;
};

} // namespace macadam::mpi
