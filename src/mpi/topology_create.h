// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/communicator.h"
#include "mpi/placement.h"

#include <functional>
#include <vector>

namespace macadam::mpi {

// What the calls that make communicators with a topology have in common.

// Which rank of `comm` takes each of `vertices` vertices, of which it has enough. In order, unless
// `reorder` is true and its ranks are on several machines: then as placement.h finds best.
// `traffic` is called only then. Local.
std::vector<int> ranks_of_vertices(Process& self, const Communicator& comm, int vertices,
                                   bool reorder, const std::function<Traffic()>& traffic,
                                   const std::vector<Grid::Dimension>& grid = {});

// A communicator in which the given ranks of `comm` are ranks 0, 1, ...; null on the others.
// Collective.
Communicator* take_vertices(Process& self, Communicator& comm, const std::vector<int>& rank_of);

// The place of this rank among them, or MPI_UNDEFINED.
int vertex_of(const Communicator& comm, const std::vector<int>& rank_of);

// As the MPI functions hand it out, with its topology; MPI_COMM_NULL for null.
MPI_Comm with_topology(Communicator* made, const std::function<Topology(int rank)>& make);

} // namespace macadam::mpi
