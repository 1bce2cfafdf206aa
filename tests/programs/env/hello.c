/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest program, in C: everybody says who it is, rank 0 counts. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
  int rank, size, sum = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0 && sum != size * (size - 1) / 2) return 1;
  if (rank == 0) printf("hello: %d ranks\n", size);
  return 0;
}
