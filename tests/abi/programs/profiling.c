/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool's MPI_Send replaces the library's, and reaches it as PMPI_Send; the library's own calls do
 * not pass through the tool. */
#include "check.h"

static int sends, barriers;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

int main(int argc, char** argv) {
  int rank, size, value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    for (int to = 1; to < size; ++to)
      MPI_Send(&to, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    CHECK(sends == size - 1);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == rank && sends == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(barriers == 1 && sends == (rank == 0 ? size - 1 : 0));
  finish("profiling");
  return 0;
}
