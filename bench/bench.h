// SPDX-License-Identifier: BSD-3-Clause
// What the benchmark programs share. They are plain MPI, so that the same source measures every
// library; each prints lines `figure parameter value` that bench/run.py puts side by side.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace bench {

inline int rank = 0;
inline int size = 1;

// Binds the rank to a core, whatever the launcher did: all libraries are measured on the same
// cores, and where ranks share them on as many each. (Left to the system, four ranks run two and
// two on two cores or three and one, which takes nearly twice as long.)
inline int cores() {
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}
inline void bind_to_core() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CPU_SET(static_cast<unsigned>(rank % cores()), &allowed);
  sched_setaffinity(0, sizeof allowed, &allowed); // in a container it may be refused: no harm
}

// How many ranks share the fullest core.
inline int ranks_per_core() {
  return (size + cores() - 1) / cores();
}

inline void start(int& argc, char**& argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bind_to_core();
}

// The same for programs whose ranks have several threads, which are not bound: they would share a
// core. False if the library does not allow it.
inline bool start_threads(int& argc, char**& argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return provided == MPI_THREAD_MULTIPLE;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How often a measurement is repeated; BENCH_BATCHES says fewer, and as much longer, where times do
// not vary.
inline int batches() {
  const char* const given = std::getenv("BENCH_BATCHES");
  return given != nullptr ? std::max(1, std::atoi(given)) : 101;
}

// Seconds for one call of `body(n)` per n, as the median of batches, `together` so many seconds. By
// default they are so short that a core which is taken away for a few milliseconds, as in a virtual
// machine, spoils few of them. Where a single iteration takes milliseconds, a few batches do. All
// ranks call it, and all run the same number of iterations.
template <class Body>
double seconds_per_iteration(Body body, int count = batches(), double together = 50e-3) {
  const double batch = together / count;
  constexpr double longest = 500e-3; // all batches together
  constexpr int fewest = 11;
  const auto time = [&](int n) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    body(n);
    return MPI_Wtime() - begin;
  };
  int n = 1;
  for (double took = 0; took < batch && n < 1 << 24;) { // also warms everything up
    took = std::min({time(n), time(n), time(n)});
    MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (took < batch)
      n *= 2;
    else
      count = std::min(count, std::max(fewest, static_cast<int>(longest / took)));
  }
  std::vector<double> times;
  for (int b = 0; b < count; ++b)
    times.push_back(time(n) / n);
  return median(times);
}

inline volatile double spun;

// Computation: a loop whose length is fixed, not its duration, since waiting for a clock would hide
// stolen time.
inline void spin(long iterations) {
  double x = 1;
  for (long i = 0; i < iterations; ++i)
    x = x * 1.0000001 + 1e-9;
  spun = x;
}

// What this thread has computed, in seconds: others that run on its core meanwhile do not count.
inline double computed() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// How long a loop takes so many seconds of computation. All ranks call it, and all get rank 0's
// answer.
inline long iterations_for(double seconds) {
  constexpr long sample = 100000;
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const double begin = computed();
    spin(sample);
    times.push_back(computed() - begin);
  }
  auto iterations = static_cast<long>(static_cast<double>(sample) * seconds / median(times));
  MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return iterations;
}

inline void figure(const char* name, long parameter, double value) {
  if (rank == 0) std::printf("%s %ld %.9g\n", name, parameter, value);
}

} // namespace bench
