// SPDX-License-Identifier: BSD-3-Clause
// Messages per second, in millions, and bandwidth, in GB/s: windows of 64 nonblocking messages from
// rank 0 to rank 1, an empty answer after each window. For each size given in bytes.
#include "bench.h"

namespace {

constexpr int window = 64;

void run(int bytes) {
  const auto n_bytes = static_cast<std::size_t>(bytes);
  std::vector<char> data(n_bytes * window + 1, 1);
  MPI_Request requests[window];
  const double seconds = bench::seconds_per_iteration([&](int n) {
    for (int k = 0; k < n; ++k) {
      for (int i = 0; i < window; ++i) {
        char* const place = data.data() + n_bytes * static_cast<std::size_t>(i);
        if (bench::rank == 0)
          MPI_Isend(place, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        else
          MPI_Irecv(place, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      if (bench::rank == 0)
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
  });
  if (bytes <= 1024)
    bench::figure("message_rate_millions", bytes, window / seconds * 1e-6);
  else
    bench::figure("bandwidth_gb", bytes, window * static_cast<double>(bytes) / seconds * 1e-9);
}

} // namespace

int main(int argc, char** argv) {
  bench::start(argc, argv);
  for (int i = 1; i < argc; ++i)
    run(std::atoi(argv[i]));
  MPI_Finalize();
}
