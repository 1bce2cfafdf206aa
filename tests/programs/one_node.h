// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "check.h"

namespace check {

// Whether all ranks share memory.
inline bool one_node() {
  MPI_Comm node;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int here = 0;
  OK(MPI_Comm_size(node, &here));
  OK(MPI_Comm_free(&node));
  return here == check::size;
}

} // namespace check
