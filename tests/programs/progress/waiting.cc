// SPDX-License-Identifier: BSD-3-Clause
// Waiting leaves the processor to others: a blocked rank uses next to none of a core, and more
// ranks than cores share them well.
#include "check.h"

#include <algorithm>

#include <sys/resource.h>

namespace {

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Two seconds (one in an emulated machine) in a call that waits, under 5 % of a core.
void expect_idle(const char* call, const std::function<void()>& wait) {
  const double wall = MPI_Wtime(), cpu = processor_seconds();
  wait();
  const double share = (processor_seconds() - cpu) / (MPI_Wtime() - wall);
  if (check::is_macadam() && share > 0.05)
    check::fail(__FILE__, __LINE__,
                std::string(call) + " used " + std::to_string(100 * share) + " % of a core");
}

void blocked_ranks_sleep() {
  const int last = check::size - 1;
  int value = 5;
  // Connections are there: to make them is not what is measured.
  if (check::rank == last) {
    for (int r = 0; r < last; ++r)
      check::token_send(r);
  } else {
    check::token_recv(last);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (check::rank == last) {
    check::sleep_ms(check::times(2000, 1000));
    for (int r = 0; r < last; ++r)
      OK(MPI_Send(&value, 1, MPI_INT, r, 0, MPI_COMM_WORLD));
    check::sleep_ms(check::times(2000, 1000));
  } else {
    expect_idle("MPI_Recv", [&] {
      OK(MPI_Recv(&value, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    });
  }
  if (check::rank == last)
    OK(MPI_Barrier(MPI_COMM_WORLD));
  else
    expect_idle("MPI_Barrier", [] { OK(MPI_Barrier(MPI_COMM_WORLD)); });
}

// Fixed work in the unit of a loop, not of time: it takes longer when the core is shared.
volatile double sink;
void work(long units) {
  double x = 1;
  for (long i = 0; i < units * 1000; ++i)
    x = x * 1.0000001 + 1e-9;
  sink = x;
}

const long units = check::times(2000, 500);

// The slowest rank's time for all steps, with or without exchanges between them.
double slowest(bool exchange) {
  const int steps = check::times(40, 10);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const double start = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    work(units);
    if (!exchange) continue;
    int got = -1, sum = 0;
    const int to = (check::rank + 1) % check::size;
    const int from = (check::rank + check::size - 1) % check::size;
    OK(MPI_Sendrecv(&step, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK_EQUAL(got, step);
    OK(MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQUAL(sum, step * check::size);
  }
  double took = MPI_Wtime() - start, most = 0;
  OK(MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  return most;
}

// Ideal sharing: the same work by the same ranks at the same time, without a word between them. The
// best of three attempts counts, since other programs may use the machine, too.
void more_ranks_than_cores() {
  double best = 1e9;
  for (int attempt = 0; attempt < 3 && best > 2; ++attempt) {
    const double ideal = slowest(false);
    best = std::min(best, slowest(true) / ideal);
  }
  if (check::is_macadam() && best > 2)
    check::fail(__FILE__, __LINE__, "took " + std::to_string(best) + " times ideal sharing");
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"blocked_ranks_sleep", blocked_ranks_sleep},
                     {"more_ranks_than_cores", more_ranks_than_cores}});
}
