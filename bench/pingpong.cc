// SPDX-License-Identifier: BSD-3-Clause
// Half the round trip of a message between two ranks, in microseconds, for each size given in
// bytes.
#include "bench.h"

int main(int argc, char** argv) {
  bench::start(argc, argv);
  const int peer = 1 - bench::rank;
  for (int i = 1; i < argc; ++i) {
    const int bytes = std::atoi(argv[i]);
    std::vector<char> out(static_cast<std::size_t>(bytes) + 1, 1), in(out.size(), 0);
    const double seconds = bench::seconds_per_iteration([&](int n) {
      for (int k = 0; k < n; ++k)
        if (bench::rank == 0) {
          MPI_Send(out.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
          MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (bench::rank == 1) {
          MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Send(out.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    });
    bench::figure("half_round_trip_us", bytes, seconds / 2 * 1e6);
  }
  MPI_Finalize();
}
