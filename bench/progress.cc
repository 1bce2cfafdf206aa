// SPDX-License-Identifier: BSD-3-Clause
// The progress benchmark of Small & Yuan (2009), section 5.2, figure 8: how much of a message hides
// behind computation when one side comes early. Rank 0 sends, rank 1 receives:
//
//   barrier; comp1; MPI_Isend; comp2; MPI_Wait; comp3      barrier; comp4; MPI_Irecv; comp5; ...
//
// Usage: progress UNIT_US: the duration of one unit of computation, 18 us in the paper. Prints the
// time per iteration, in units, of the four configurations of figures 9 and 10.
#include "bench.h"

namespace {

volatile double sink;

// A loop whose length is fixed, not its duration: waiting for a clock would hide stolen time.
void compute(long iterations) {
  double x = 1;
  for (long i = 0; i < iterations; ++i)
    x = x * 1.0000001 + 1e-9;
  sink = x;
}

long iterations_per_unit(double unit_us) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const double begin = MPI_Wtime();
    compute(100000);
    times.push_back(MPI_Wtime() - begin);
  }
  return static_cast<long>(100000 * unit_us * 1e-6 / bench::median(times));
}

struct Configuration {
  int before, between, after;
};

// Microseconds per iteration, the slower side's.
double run(Configuration sender, Configuration receiver, int bytes, long unit) {
  const Configuration mine = bench::rank == 0 ? sender : receiver;
  std::vector<char> data(static_cast<std::size_t>(bytes), 1);
  const int iterations = 200;
  std::vector<double> times;
  for (int batch = 0; batch < 5; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      compute(mine.before * unit);
      MPI_Request request;
      if (bench::rank == 0)
        MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
      else
        MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
      compute(mine.between * unit);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      compute(mine.after * unit);
    }
    double took = (MPI_Wtime() - begin) / iterations * 1e6, slower = 0;
    MPI_Allreduce(&took, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    times.push_back(slower);
  }
  return bench::median(times);
}

} // namespace

int main(int argc, char** argv) {
  bench::start(argc, argv);
  const double unit_us = argc > 1 ? std::atof(argv[1]) : 18;
  long unit = iterations_per_unit(unit_us);
  MPI_Bcast(&unit, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  const auto units = [&](Configuration s, Configuration r, int bytes) {
    return run(s, r, bytes, unit) / unit_us;
  };
  constexpr int kb = 1000;
  for (int x : {10, 20, 30, 40, 50})
    bench::figure("figure_9a", x, units({0, 0, 60}, {x, 0, 0}, 30 * kb));
  for (int size : {15, 20, 25, 30, 35, 40})
    bench::figure("figure_9b", size, units({0, 20, 0}, {5, 5, 20}, size * kb));
  for (int size : {100, 200, 400, 600, 800})
    bench::figure("figure_10a", size, units({20, 20, 20}, {0, 0, 0}, size * kb));
  for (int size : {100, 200, 400, 600, 800})
    bench::figure("figure_10b", size, units({27, 0, 0}, {20, 20, 20}, size * kb));
  MPI_Finalize();
}
