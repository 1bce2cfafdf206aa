// SPDX-License-Identifier: BSD-3-Clause
// The progress benchmark of Small & Yuan (2009), section 5.2, figure 8: how much of a message hides
// behind computation when one side comes early. Rank 0 sends, rank 1 receives:
//
//   barrier; comp1; MPI_Isend; comp2; MPI_Wait; comp3      barrier; comp4; MPI_Irecv; comp5; ...
//
// Usage: progress UNIT_US: the duration of one unit of computation, 18 us in the paper. Prints the
// time per iteration, in units, of the four configurations of figures 9 and 10.
//
// With `progress UNIT_US apart` each role computes on a processor of its own that nothing else
// needs: on this one it sleeps for as long, and leaves it to what carries the messages. For a
// machine that counts instructions and has one processor, where times do not vary. Prints the time
// per iteration over that of full overlap, for 30 and 100 KB.
#include "bench.h"

#include <ctime>
#include <functional>

#include <sys/prctl.h>

namespace {

// Spends some units of time in computation.
using Compute = std::function<void(int units)>;

Compute on_this_processor(double unit_us) {
  const long unit = bench::iterations_for(unit_us * 1e-6);
  return [unit](int units) { bench::spin(units * unit); };
}

Compute elsewhere(double unit_us) {
  prctl(PR_SET_TIMERSLACK, 1); // ns: end when it is time
  return [unit_us](int units) {
    const auto nanoseconds = static_cast<long>(units * unit_us * 1e3);
    const timespec time{nanoseconds / 1000000000, nanoseconds % 1000000000};
    if (nanoseconds > 0) nanosleep(&time, nullptr);
  };
}

struct Configuration {
  int before, between, after;
  [[nodiscard]] int sum() const { return before + between + after; }
};

struct Repetitions {
  int batches, iterations;
};

// Microseconds per iteration, the slower side's.
double run(const Compute& compute, Repetitions times, Configuration sender, Configuration receiver,
           int bytes) {
  const Configuration mine = bench::rank == 0 ? sender : receiver;
  std::vector<char> data(static_cast<std::size_t>(bytes), 1);
  std::vector<double> results;
  for (int batch = 0; batch < times.batches; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < times.iterations; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      compute(mine.before);
      MPI_Request request;
      if (bench::rank == 0)
        MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
      else
        MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
      compute(mine.between);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      compute(mine.after);
    }
    double took = (MPI_Wtime() - begin) / times.iterations * 1e6, slower = 0;
    MPI_Allreduce(&took, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    results.push_back(slower);
  }
  return bench::median(results);
}

constexpr int kb = 1000;

void print_units(double unit_us) {
  const Compute compute = on_this_processor(unit_us);
  const auto units = [&](Configuration s, Configuration r, int bytes) {
    return run(compute, {5, 200}, s, r, bytes) / unit_us;
  };
  for (int x : {10, 20, 30, 40, 50})
    bench::figure("figure_9a", x, units({0, 0, 60}, {x, 0, 0}, 30 * kb));
  for (int size : {15, 20, 25, 30, 35, 40})
    bench::figure("figure_9b", size, units({0, 20, 0}, {5, 5, 20}, size * kb));
  for (int size : {100, 200, 400, 600, 800})
    bench::figure("figure_10a", size, units({20, 20, 20}, {0, 0, 0}, size * kb));
  for (int size : {100, 200, 400, 600, 800})
    bench::figure("figure_10b", size, units({27, 0, 0}, {20, 20, 20}, size * kb));
}

void print_overlap(double unit_us) {
  const Compute compute = elsewhere(unit_us);
  const auto over_ideal = [&](const char* name, Configuration s, Configuration r) {
    const double ideal = unit_us * std::max(s.sum(), r.sum());
    for (int size : {30, 100})
      bench::figure(name, size, run(compute, {3, 20}, s, r, size * kb) / ideal);
  };
  over_ideal("overlap_9a", {0, 0, 60}, {30, 0, 0});
  over_ideal("overlap_9b", {0, 20, 0}, {5, 5, 20});
  over_ideal("overlap_10a", {20, 20, 20}, {0, 0, 0});
  over_ideal("overlap_10b", {27, 0, 0}, {20, 20, 20});
}

} // namespace

int main(int argc, char** argv) {
  bench::start(argc, argv);
  const double unit_us = argc > 1 ? std::atof(argv[1]) : 18;
  if (argc > 2 && std::strcmp(argv[2], "apart") == 0)
    print_overlap(unit_us);
  else
    print_units(unit_us);
  MPI_Finalize();
}
