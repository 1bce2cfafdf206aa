// SPDX-License-Identifier: BSD-3-Clause
// Time of an 8-byte allreduce and of a barrier, in microseconds, on the ranks it is started with.
#include "bench.h"

int main(int argc, char** argv) {
  bench::start(argc, argv);
  double in = 1, out = 0;
  const double allreduce = bench::seconds_per_iteration([&](int n) {
    for (int k = 0; k < n; ++k)
      MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  });
  bench::figure("allreduce_us", bench::size, allreduce * 1e6);
  const double barrier = bench::seconds_per_iteration([](int n) {
    for (int k = 0; k < n; ++k)
      MPI_Barrier(MPI_COMM_WORLD);
  });
  bench::figure("barrier_us", bench::size, barrier * 1e6);
  MPI_Finalize();
}
