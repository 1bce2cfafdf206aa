// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "coll/comm.h"
#include "coll/task.h"
#include "datatype/op.h"

#include <mpi.h>

namespace macadam::coll {

// Every algorithm, as a coroutine on messages. In the costs, n is the number of ranks, m the bytes
// of the vector (or of one rank's block), a "step" one message on the critical path.

Task barrier_direct(Comm& comm);
Task barrier_dissemination(Comm& comm);

Task bcast_direct(Comm& comm, Data data, int root);
Task bcast_binomial(Comm& comm, Data data, int root);
Task bcast_scatter_allgather(Comm& comm, Data data, int root);
Task bcast_chain(Comm& comm, Data data, int root);

// `mine` is this rank's contribution. The result goes to `result`, of the same type and count, which may
// be the same memory as `mine` and is else only written.
Task allreduce_direct(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_recursive_doubling(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_rabenseifner(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_ring(Comm& comm, Data mine, Data result, const datatype::Op& op);

// `all` has this rank's block in it already.
Task allgather_direct(Comm& comm, Blocks all);
Task allgather_bruck(Comm& comm, Blocks all);
Task allgather_ring(Comm& comm, Blocks all);

}  // namespace macadam::coll
