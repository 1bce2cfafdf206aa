// SPDX-License-Identifier: BSD-3-Clause
// One rank aborts with code 7 while the others wait in MPI or compute for ever: the job ends. Or,
// by the argument "in_finalize", while it is in MPI_Finalize, where the others never come.
#include "check.h"

namespace {

void abort_in_finalize() {
  if (check::rank != check::size - 1) check::compute_ms(1e9);
  std::thread watchdog([] {
    check::sleep_ms(100);
    MPI_Abort(MPI_COMM_WORLD, 7);
  });
  MPI_Finalize();
  watchdog.join();
}

} // namespace

int main(int argc, char** argv) {
  int provided = -1;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &check::size));
  if (argc > 1) abort_in_finalize();
  if (check::rank == check::size - 1) {
    check::sleep_ms(100);
    MPI_Abort(MPI_COMM_WORLD, 7);
  }
  if (check::rank % 2) check::compute_ms(1e9);
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return 0;
}
