// SPDX-License-Identifier: BSD-3-Clause
// Without an error handler of the user's, an error ends the whole job with a message.
#include "check.h"

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  int value = 1;
  if (check::rank == 0) MPI_Send(&value, 1, MPI_INT, 12345, 0, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return 0; // never reached: seen as a failure by the test
}
