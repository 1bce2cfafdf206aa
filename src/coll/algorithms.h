// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "coll/called.h"
#include "coll/comm.h"
#include "coll/reduction.h"
#include "coll/task.h"
#include "datatype/op.h"

#include <mpi.h>

namespace macadam::coll {

// Every algorithm, as a coroutine on messages or, those called shared, on the board of `comm`. In
// the costs, n is the number of ranks, m the bytes of the vector (or of one rank's block), a "step"
// one message on the critical path.

// Those on any team by the algorithm of the rules are called _on; their arguments are as of the
// others.

Task barrier_on(Comm& comm);
Task barrier_leaders(Comm& comm);
Task barrier_shared(Comm& comm);
Task barrier_direct(Comm& comm);
Task barrier_dissemination(Comm& comm);
Task barrier_recursive_doubling(Comm& comm);
Task barrier_pairs(Comm& comm);

Task bcast_on(Comm& comm, Data data, int root);
Task bcast_leaders(Comm& comm, Data data, int root);
Task bcast_shared(Comm& comm, Data data, int root);
Task bcast_direct(Comm& comm, Data data, int root);
Task bcast_pieces(Comm& comm, Data data, int root);
Task bcast_binomial(Comm& comm, Data data, int root);
Task bcast_scatter_allgather(Comm& comm, Data data, int root);
Task bcast_chain(Comm& comm, Data data, int root);

// In reductions, `mine` is this rank's contribution. The result goes to `result`, of the same type
// and count, which may be the same memory as `mine` and is else only written.
// Shared ones need can_share(), the same on all ranks.
[[nodiscard]] bool can_share(const Comm& comm, const datatype::Type& type);
Task reduce_on(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_leaders(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_slices(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_shared(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_direct(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_pieces(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_binomial(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);
Task reduce_rabenseifner(Comm& comm, Data mine, Data result, const datatype::Op& op, int root);

Task allreduce_on(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_leaders(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_slices(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_shared(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_direct(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_pieces(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_recursive_doubling(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_rabenseifner(Comm& comm, Data mine, Data result, const datatype::Op& op);
Task allreduce_ring(Comm& comm, Data mine, Data result, const datatype::Op& op);

// `mine` is a vector with a block for each rank in a row, of `blocks.counts` (or `blocks.count`)
// elements; this rank's block of the result goes to `result`, which may lie inside of `mine`.
Task reduce_scatter_on(Comm& comm, Data mine, Blocks blocks, Data result, const datatype::Op& op);
Task reduce_scatter_shared(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op);
Task reduce_scatter_slices(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op);
Task reduce_scatter_direct(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op);
Task reduce_scatter_recursive_halving(Comm& comm, Data mine, Blocks blocks, Data result,
                                      const datatype::Op& op);
Task reduce_scatter_pairwise(Comm& comm, Data mine, Blocks blocks, Data result,
                             const datatype::Op& op);

// `inclusive`: the sum over ranks up to this one, else over those below it (then nothing is written
// on rank 0).
Task scan_direct(Comm& comm, Data mine, Data result, const datatype::Op& op, bool inclusive);
Task scan_recursive_doubling(Comm& comm, Data mine, Data result, const datatype::Op& op,
                             bool inclusive);

// At the root, `all` has a block for each rank; its own block is dealt with already, but by single
// copies, which deal with it.
Task gather_on(Comm& comm, Data mine, Blocks all, int root);
Task gather_leaders(Comm& comm, Data mine, Blocks all, int root);
Task gather_shared(Comm& comm, Data mine, Blocks all, int root);
Task gather_chunks(Comm& comm, Called called, Data mine, Blocks all, int root); // behind the notes
Task gather_single_copy(Comm& comm, Data mine, Blocks all, int root);
// `stays`: the root is here already, see Batch::stay().
Task gather_direct(Comm& comm, Data mine, Blocks all, int root, bool stays = false);
Task gather_binomial(Comm& comm, Data mine, Blocks all, int root);
Task scatter_on(Comm& comm, Blocks all, Data mine, int root);
Task scatter_leaders(Comm& comm, Blocks all, Data mine, int root);
Task scatter_shared(Comm& comm, Blocks all, Data mine, int root);
Task scatter_chunks(Comm& comm, Called called, Blocks all, Data mine, int root); // behind the notes
Task scatter_single_copy(Comm& comm, Blocks all, Data mine, int root);
Task scatter_direct(Comm& comm, Blocks all, Data mine, int root);
Task scatter_binomial(Comm& comm, Blocks all, Data mine, int root);

// `all` has this rank's block in it already.
Task allgather_on(Comm& comm, Blocks all);
Task allgather_slices(Comm& comm, Blocks all);
Task allgather_shared(Comm& comm, Blocks all);
Task allgather_direct(Comm& comm, Blocks all);
Task allgather_bruck(Comm& comm, Blocks all);
Task allgather_recursive_doubling(Comm& comm, Blocks all);
Task allgather_ring(Comm& comm, Blocks all);

// A rank's block for itself is dealt with already.
Task alltoall_on(Comm& comm, Blocks out, Blocks in);
Task alltoall_slices(Comm& comm, Blocks out, Blocks in);
Task alltoall_shared(Comm& comm, Blocks out, Blocks in);
Task alltoall_chunks(Comm& comm, Called called, Blocks out, Blocks in); // behind the notes
Task alltoall_single_copy(Comm& comm, Blocks out, Blocks in);
Task alltoall_direct(Comm& comm, Blocks out, Blocks in);
Task alltoall_bruck(Comm& comm, Blocks out, Blocks in);
Task alltoall_pairwise(Comm& comm, Blocks out, Blocks in);
// What is in `all` is exchanged for what comes, pair by pair.
Task alltoall_in_place(Comm& comm, Blocks all);

} // namespace macadam::coll
