// SPDX-License-Identifier: BSD-3-Clause
// Waits beside other programs: an exchange of 8 bytes between two ranks, and collectives.
//
//   crowded half_round_trip | barrier | allreduce
//
// Prints the mean microseconds, over half a second or more: where ranks lose their cores that mean
// is what a program sees.
#include "bench.h"

#include <functional>
#include <map>
#include <string>

namespace {

using bench::rank;

constexpr double least_seconds = 0.5;
constexpr int first_repetitions = 32;

long sent = 1, received = 0;

void turn() {
  const int other = 1 - rank;
  if (rank == 0) MPI_Send(&sent, 1, MPI_LONG, other, 1, MPI_COMM_WORLD);
  MPI_Recv(&received, 1, MPI_LONG, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(&sent, 1, MPI_LONG, other, 1, MPI_COMM_WORLD);
}

struct What {
  std::function<void()> body;
  double of_a_repetition = 1; // what is printed
};

const std::map<std::string, What> table = {
    {"half_round_trip", {turn, 0.5}},
    {"barrier", {[] { MPI_Barrier(MPI_COMM_WORLD); }}},
    {"allreduce", {[] { MPI_Allreduce(&sent, &received, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); }}},
};

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); // wherever the library and the system have put it
  MPI_Comm_size(MPI_COMM_WORLD, &bench::size);
  const auto what = argc == 2 ? table.find(argv[1]) : table.end();
  if (what == table.end() || (what->first == "half_round_trip" && bench::size != 2)) {
    std::fprintf(stderr, "usage: crowded half_round_trip (on 2 ranks) | barrier | allreduce\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int repetitions = first_repetitions, goes_on = 1; goes_on != 0; repetitions *= 4) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < repetitions; ++i)
      what->second.body();
    const double seconds = MPI_Wtime() - begin;
    goes_on = seconds < least_seconds ? 1 : 0;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (goes_on == 0)
      bench::figure(argv[1], bench::size,
                    1e6 * seconds / repetitions * what->second.of_a_repetition);
  }
  MPI_Finalize();
}
