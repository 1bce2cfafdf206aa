// SPDX-License-Identifier: BSD-3-Clause
// Messages per second of all threads together, in millions, under MPI_THREAD_MULTIPLE: thread i of
// rank 0 sends windows of 64 nonblocking messages of 8 bytes to thread i of rank 1, each pair on a
// communicator of its own, and gets an empty answer after each window. For each number of threads.
//
//   threads N ...
#include "bench.h"

#include <barrier>
#include <thread>

namespace {

constexpr int window = 64, bytes = 8;
// Repeats, and their seconds together: each is long beside the scheduler's time slices, as threads
// may be more than cores.
constexpr int repeats = 11;
constexpr double together = 550e-3;

void exchange(MPI_Comm comm, int windows) {
  char data[window * bytes] = {};
  MPI_Request requests[window];
  for (int k = 0; k < windows; ++k) {
    for (int i = 0; i < window; ++i) {
      if (bench::rank == 0)
        MPI_Isend(data + i * bytes, bytes, MPI_BYTE, 1, 1, comm, &requests[i]);
      else
        MPI_Irecv(data + i * bytes, bytes, MPI_BYTE, 0, 1, comm, &requests[i]);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (bench::rank == 0)
      MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, comm, MPI_STATUS_IGNORE);
    else
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, comm);
  }
}

void run(int threads) {
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(threads));
  for (MPI_Comm& comm : comms)
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int windows = 0; // none: the end
  std::barrier all(threads);
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < comms.size(); ++i) {
    others.emplace_back([&, i] {
      for (;;) {
        all.arrive_and_wait();
        if (windows == 0) return;
        exchange(comms[i], windows);
        all.arrive_and_wait();
      }
    });
  }
  const double seconds = bench::seconds_per_iteration(
      [&](int n) {
        windows = n;
        all.arrive_and_wait();
        exchange(comms[0], windows);
        all.arrive_and_wait();
      },
      repeats, together);
  windows = 0;
  all.arrive_and_wait();
  for (std::thread& other : others)
    other.join();
  for (MPI_Comm& comm : comms)
    MPI_Comm_free(&comm);
  bench::figure("thread_rate_millions", threads, threads * window / seconds * 1e-6);
}

} // namespace

int main(int argc, char** argv) {
  if (bench::start_threads(argc, argv)) {
    for (int i = 1; i < argc; ++i)
      run(std::atoi(argv[i]));
  }
  MPI_Finalize();
}
