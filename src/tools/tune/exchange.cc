// SPDX-License-Identifier: BSD-3-Clause
// macadam-tune ARRIVAL BATCHES BYTES...: how long two ranks take to exchange a message, for
// `macadam tune`, which runs it once with each protocol. Prints `bytes microseconds`.
//
//   ready   ping-pong: the receiver waits already; half a round trip
//   late    the message is there, or asks to come, before its receive is posted; until an
//           empty answer is back
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

constexpr double batch_seconds = 4e-3;

int rank = 0;

void exchange_ready(std::vector<char>& buffer, int bytes) {
  for (const int sender : {0, 1}) {
    if (rank == sender)
      MPI_Send(buffer.data(), bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
    else
      MPI_Recv(buffer.data(), bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

void exchange_late(std::vector<char>& buffer, int bytes) {
  if (rank == 0) {
    MPI_Send(buffer.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Probe(0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(buffer.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
}

// Microseconds of one call, of the best batch: what disturbs a measurement only makes it longer.
template <class Exchange>
double best_of(int batches, Exchange exchange) {
  int calls = 1;
  double best = 0;
  for (int batch = 0; batch < batches;) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i)
      exchange();
    double seconds = MPI_Wtime() - begin;
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); // both go on alike
    if (seconds < batch_seconds && calls < 1 << 20) {
      calls *= 2; // long enough for the clock, and everything warm
      continue;
    }
    const double each = seconds / calls * 1e6;
    best = batch++ == 0 ? each : std::min(best, each);
  }
  return best;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string_view arrival = argc > 3 ? argv[1] : "";
  const int batches = argc > 3 ? std::atoi(argv[2]) : 0;
  if (size != 2 || batches < 1 || (arrival != "ready" && arrival != "late")) {
    std::fprintf(stderr, "macadam-tune is started by 'macadam tune': two ranks, ready|late, the "
                         "number of batches, sizes\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int i = 3; i < argc; ++i) {
    const int bytes = std::max(std::atoi(argv[i]), 0);
    std::vector<char> buffer(static_cast<std::size_t>(bytes) + 1, 1);
    const double time = arrival == "ready"
                            ? best_of(batches, [&] { exchange_ready(buffer, bytes); }) / 2
                            : best_of(batches, [&] { exchange_late(buffer, bytes); });
    if (rank == 0) std::printf("%d %.4f\n", bytes, time);
  }
  MPI_Finalize();
}
