// SPDX-License-Identifier: BSD-3-Clause
// Starts and ends. With the argument `memory` it says how much memory a rank has after MPI_Init:
// resident, its share of what is shared (RSS and PSS), and pinned, in MB, the mean over the ranks.
// With `talked` it says so again after every rank has exchanged a message with every other. With
// `version` it says which library it runs on. The drivers take the time from mpiexec to the end of
// MPI_Finalize from outside.
#include "bench.h"

#include <fstream>
#include <string>

namespace {

// A field of a file of /proc/self, which are in kB.
double field_mb(const char* file, const std::string& field) {
  std::ifstream fields(file);
  for (std::string word; fields >> word;)
    if (word == field) {
      double kb = 0;
      fields >> kb;
      return kb * 1024e-6;
    }
  return 0;
}

struct Memory {
  double resident = field_mb("/proc/self/smaps_rollup", "Rss:");
  double share = field_mb("/proc/self/smaps_rollup", "Pss:");
  double pinned = field_mb("/proc/self/status", "VmPin:");
};

void mean_figure(const char* name, double mine) {
  double sum = 0;
  MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  bench::figure(name, bench::size, sum / bench::size);
}

void talk_to_all() {
  char out[1024] = {}, in[sizeof out];
  for (int distance = 1; distance < bench::size; ++distance) {
    const int to = (bench::rank + distance) % bench::size;
    const int from = (bench::rank + bench::size - distance) % bench::size;
    MPI_Sendrecv(out, sizeof out, MPI_BYTE, to, 1, in, sizeof in, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
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
  if (asked == "memory" || asked == "talked") {
    const Memory memory; // of all ranks, before any of them tells
    mean_figure("rss_mb", memory.resident);
    mean_figure("pss_mb", memory.share);
    mean_figure("pinned_mb", memory.pinned);
  }
  if (asked == "talked") {
    talk_to_all();
    const Memory memory;
    mean_figure("rss_talked_mb", memory.resident);
    mean_figure("pinned_talked_mb", memory.pinned);
  }
  MPI_Finalize();
}
