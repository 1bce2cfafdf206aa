// SPDX-License-Identifier: BSD-3-Clause
// Time of an 8-byte allreduce and of a barrier, in microseconds, on the ranks it is started with;
// or of an alltoall, for each block given in bytes (of four), whose data are written before it and
// read after it, which the time includes.
#include "bench.h"

#include <algorithm>
#include <numeric>

int main(int argc, char** argv) {
  bench::start(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const int bytes = std::atoi(argv[i]);
    const auto all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(bench::size);
    std::vector<unsigned> from(all / sizeof(unsigned), 1), to(from);
    unsigned sum = 0;
    const double alltoall = bench::seconds_per_iteration([&](int n) {
      for (int k = 0; k < n; ++k) {
        std::fill(from.begin(), from.end(), sum);
        MPI_Alltoall(from.data(), bytes, MPI_BYTE, to.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
        sum = std::accumulate(to.begin(), to.end(), sum);
      }
    });
    bench::figure("alltoall_us", bytes, alltoall * 1e6);
  }
  if (argc > 1) {
    MPI_Finalize();
    return 0;
  }
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
