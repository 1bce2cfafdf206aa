// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/info.h"

#include <cstdint>
#include <optional>

namespace macadam::mpi {

// What a Fortran library on top has told of its compiler (MPI 5.0, section 20.3.1). Handed back
// when asked; nothing in here depends on it, since what would change a result is refused.
struct FortranFacts {
  struct Booleans {
    std::int64_t yes;
    std::int64_t no;
  };
  std::optional<Booleans> booleans;
  std::optional<std::vector<std::pair<std::string, std::string>>> info;
};

} // namespace macadam::mpi
