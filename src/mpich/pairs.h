// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::mpich {

// A constant's values in the two ABIs.
struct Pair {
  int mpich;
  int standard;
};

} // namespace macadam::mpich
