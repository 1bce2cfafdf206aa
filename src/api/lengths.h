// SPDX-License-Identifier: BSD-3-Clause
// How many elements an array has where an object tells, for interfaces in front of the entry points
// which convert arrays: Fortran and other ABIs. `Mpi` has the functions of MPI as members, without
// their prefix. An error here comes again, and is reported, in the call that the array belongs to.
#pragma once

#include <mpi.h>

namespace macadam::api {

// Ranks that a collective addresses.
template <class Mpi>
int peers(const Mpi& mpi, MPI_Comm comm) {
  int is_inter = 0, size = 0;
  if (comm == MPI_COMM_NULL || mpi.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return 0;
  const int code = is_inter != 0 ? mpi.Comm_remote_size(comm, &size) : mpi.Comm_size(comm, &size);
  return code == MPI_SUCCESS ? size : 0;
}

template <class Mpi>
int topology(const Mpi& mpi, MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  if (comm != MPI_COMM_NULL) mpi.Topo_test(comm, &kind);
  return kind;
}

// Of the Cartesian topology.
template <class Mpi>
int dimensions(const Mpi& mpi, MPI_Comm comm) {
  int number = 0;
  const bool is_grid = topology(mpi, comm) == MPI_CART;
  return is_grid && mpi.Cartdim_get(comm, &number) == MPI_SUCCESS ? number : 0;
}

// How many neighbors a rank receives from and sends to (MPI 5.0, section 8.6).
struct Neighbors {
  int in = 0;
  int out = 0;
};
template <class Mpi>
Neighbors neighbors(const Mpi& mpi, MPI_Comm comm) {
  Neighbors found;
  int rank = 0, weighted = 0;
  switch (topology(mpi, comm)) {
  case MPI_CART:
    found.out = found.in = 2 * dimensions(mpi, comm);
    break;
  case MPI_GRAPH:
    mpi.Comm_rank(comm, &rank);
    if (mpi.Graph_neighbors_count(comm, rank, &found.in) == MPI_SUCCESS) found.out = found.in;
    break;
  case MPI_DIST_GRAPH:
    mpi.Dist_graph_neighbors_count(comm, &found.in, &found.out, &weighted);
    break;
  default: // the call refuses it
    break;
  }
  return found;
}

} // namespace macadam::api
