// SPDX-License-Identifier: BSD-3-Clause
// Starts and ends. With the argument `memory` it says how much memory a rank has after MPI_Init:
// resident, and its share of what is shared (RSS and PSS), in MB, the mean over the ranks. With
// `version` it says which library it runs on.
// bench/run.py takes the time from mpiexec to the end of MPI_Finalize from outside.
#include "bench.h"

#include <fstream>
#include <string>

namespace {

double smaps_mb(const std::string& field) {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;)
    if (word == field) {
      double kb = 0;
      rollup >> kb;
      return kb * 1024e-6;
    }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &bench::rank);
  MPI_Comm_size(MPI_COMM_WORLD, &bench::size);
  const std::string asked = argc > 1 ? argv[1] : "";
  if (asked == "version" && bench::rank == 0) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::puts(text);
  }
  if (asked == "memory") {
    double mine[2] = {smaps_mb("Rss:"), smaps_mb("Pss:")}, sum[2] = {0, 0};
    MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    bench::figure("rss_mb", bench::size, sum[0] / bench::size);
    bench::figure("pss_mb", bench::size, sum[1] / bench::size);
  }
  MPI_Finalize();
}
