// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/collective.h"

namespace macadam::coll {

// The forms for intercommunicators; operations.h leads to them where Arguments::inside is set.
// `root` is MPI_ROOT, MPI_PROC_NULL or a rank of the remote group; blocks are those of the remote
// ranks.
Task inter_barrier(Collective& self);
Task inter_bcast(Collective& self);
Task inter_reduce(Collective& self);
Task inter_allreduce(Collective& self);
Task inter_reduce_scatter(Collective& self);
Task inter_gather(Collective& self);
Task inter_scatter(Collective& self);
Task inter_allgather(Collective& self);
Task inter_alltoall(Collective& self); // and alltoallv, alltoallw

} // namespace macadam::coll
