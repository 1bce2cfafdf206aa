// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/collective.h"

namespace macadam::coll {

// The collectives of MPI, to be given to a Collective with their Arguments. Each picks its
// algorithm by the rules in Resources. Arguments are valid as MPI requires them (checked by the
// layer above).
//
// Where `in_place` is set, `send` means nothing and the data are in `receive` as MPI says. Whole
// vectors are the regular block of one: `receive.address, .count, .type`.

Task barrier(Collective& self);
// receive: the data, on all ranks. root.
Task bcast(Collective& self);
// send, receive (root only): vectors. op, root.
Task reduce(Collective& self);
// send, receive: vectors. op.
Task allreduce(Collective& self);
// send: vector. receive: a block a rank (root only). root. Also Gatherv.
Task gather(Collective& self);
Task gatherv(Collective& self);
// send: a block a rank (root only). receive: vector. root.
Task scatter(Collective& self);
Task scatterv(Collective& self);
// send: vector. receive: a block a rank. Also Allgatherv.
Task allgather(Collective& self);
// send, receive: a block a rank. Alltoallv and Alltoallw: alltoallv.
Task alltoall(Collective& self);
Task alltoallv(Collective& self);
// send: a block a rank, in a row (counts without displacements). receive: this rank's block; in
// place: as send. op.
Task reduce_scatter(Collective& self);
// send, receive: vectors. op.
Task scan(Collective& self);
Task exscan(Collective& self);
// send: vector. receive: a block a source, all of one length but in the second. neighbors.
Task neighbor_allgather(Collective& self);
Task neighbor_allgatherv(Collective& self);
// send: a block a destination. receive: a block a source. All are of one length, but not in the
// second, which is also Neighbor_alltoallw. neighbors.
Task neighbor_alltoall(Collective& self);
Task neighbor_alltoallv(Collective& self);

} // namespace macadam::coll
