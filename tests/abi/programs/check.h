/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>

/* Ends the job with the place if a condition does not hold. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);               \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                                \
    }                                                                                              \
  } while (0)

/* The last line of a program whose checks all held, on every rank. */
static inline void finish(const char* name) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d ranks agree\n", name, size);
  MPI_Finalize();
}

#endif
