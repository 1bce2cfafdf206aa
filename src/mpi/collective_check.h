// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/collectives.h"

namespace macadam::mpi {

// MACADAM_CHECK: has `call` compared with those of the other ranks before it begins. Its arguments
// are complete. `number`: which of the communicator's collectives it is; 0: one that is not
// counted, as it is a part of another function.
[[gnu::cold]] void add_check(Process& self, const Communicator& comm, CollectiveCall& call,
                             std::uint32_t number);

} // namespace macadam::mpi
