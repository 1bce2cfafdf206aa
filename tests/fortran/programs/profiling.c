/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool in C: counts sends, whatever language they come from. */
#include <mpi.h>

static int sends = 0;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

/* For the Fortran program, by the name that its interface says. */
int sends_seen(void);
int sends_seen(void) {
  return sends;
}
