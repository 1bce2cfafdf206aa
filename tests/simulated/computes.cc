// SPDX-License-Identifier: BSD-3-Clause
// A ring in which every rank computes before it sends on, and rank 0 says how long it took.
#include <mpi.h>

#include <cstdio>

namespace {

// Not to be left out by the compiler.
double work(int steps) {
  volatile double sum = 0;
  for (int i = 1; i <= steps; ++i)
    sum = sum + 1.0 / i;
  return sum;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double start = MPI_Wtime();
  double sum = 0;
  for (int round = 0; round < 20; ++round) {
    sum += work(200000);
    MPI_Sendrecv_replace(&sum, 1, MPI_DOUBLE, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 0) std::printf("%.17g in %.12f s\n", sum, MPI_Wtime() - start);
  MPI_Finalize();
  return 0;
}
