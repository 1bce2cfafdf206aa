/* SPDX-License-Identifier: BSD-3-Clause */
/* A token goes round the ring of ranks; each adds one. Usage: ring [rounds] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size, token = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  const double start = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) {
      token++;
      MPI_Sendrecv_replace(&token, 1, MPI_INT, next, 0, previous, 0, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      token++;
      MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0)
    printf("%d rounds over %d ranks: the token is %d (%s), %.3f us from rank to rank\n", rounds,
           size, token, token == rounds * size ? "right" : "WRONG",
           1e6 * (MPI_Wtime() - start) / rounds / size);
  MPI_Finalize();
  return rank == 0 && token != rounds * size;
}
