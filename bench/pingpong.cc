// SPDX-License-Identifier: BSD-3-Clause
// Half the round trip of a message between two ranks, in microseconds, for each size given in
// bytes. After `touch` the data are written before they are sent, and read when they have come.
#include "bench.h"

#include <numeric>

int main(int argc, char** argv) {
  bench::start(argc, argv);
  const int peer = 1 - bench::rank;
  const bool touch = argc > 1 && std::strcmp(argv[1], "touch") == 0;
  for (int i = touch ? 2 : 1; i < argc; ++i) {
    const int bytes = std::atoi(argv[i]);
    using Word = unsigned long;
    std::vector<Word> out(static_cast<std::size_t>(bytes) / sizeof(Word) + 1, 1), in(out.size(), 0);
    Word sum = 1;
    const auto send = [&] {
      if (touch) std::fill(out.begin(), out.end(), sum);
      MPI_Send(out.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    };
    const auto receive = [&] {
      MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (touch) sum = std::accumulate(in.begin(), in.end(), sum);
    };
    const double seconds = bench::seconds_per_iteration([&](int n) {
      for (int k = 0; k < n; ++k)
        if (bench::rank == 0) {
          send();
          receive();
        } else if (bench::rank == 1) {
          receive();
          send();
        }
    });
    bench::figure(touch ? "touched_us" : "half_round_trip_us", bytes, seconds / 2 * 1e6);
  }
  MPI_Finalize();
}
