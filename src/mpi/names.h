// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <cstring>
#include <string>

// The names that programs give to communicators, windows and datatypes.
namespace macadam::mpi {

// As much of a name as is kept.
[[nodiscard]] inline std::string kept_name(const char* name) {
  return {name, ::strnlen(name, MPI_MAX_OBJECT_NAME - 1)};
}

inline void hand_out_name(const std::string& name, char* to, int* length) {
  *length = static_cast<int>(name.copy(to, MPI_MAX_OBJECT_NAME - 1));
  to[*length] = '\0';
}

} // namespace macadam::mpi
