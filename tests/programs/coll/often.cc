// SPDX-License-Identifier: BSD-3-Clause
// A communicator whose collectives are many: after some the library takes other forms for them
// (coll/selection.cc), on all ranks at the same call, whatever nonblocking ones are in between.
#include "check.h"

#include <mpi.h>

namespace {

void sums_and_blocks(int i) {
  const int n = check::size, r = check::rank, mine = r + i;
  int result = 0;
  OK(MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(result, n * (n - 1) / 2 + n * i);
  OK(MPI_Scan(&mine, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(result, r * (r + 1) / 2 + (r + 1) * i);
  std::vector<int> out(static_cast<std::size_t>(n)), in(out.size());
  OK(MPI_Allgather(&mine, 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD));
  for (int k = 0; k < n; ++k) {
    CHECK_EQUAL(in[static_cast<std::size_t>(k)], k + i);
    out[static_cast<std::size_t>(k)] = 1000 * r + k + i;
  }
  OK(MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD));
  for (int k = 0; k < n; ++k) {
    CHECK_EQUAL(in[static_cast<std::size_t>(k)], 1000 * k + r + i);
    out[static_cast<std::size_t>(k)] = k * i;
  }
  OK(MPI_Reduce_scatter_block(out.data(), &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(result, n * r * i);
}

void nonblocking(int i) {
  const int mine = check::rank + i;
  int most = 0;
  MPI_Request request;
  OK(MPI_Iallreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQUAL(most, check::size - 1 + i);
}

// Nobody leaves before the last one has come.
void barrier(int i) {
  if (check::rank == i % check::size) check::sleep_ms(1);
  const double came = MPI_Wtime();
  double last = 0;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const double left = MPI_Wtime();
  OK(MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  CHECK(left >= last);
}

void often() {
  for (int i = 0; i < 60; ++i) {
    sums_and_blocks(i);
    nonblocking(i);
    barrier(i);
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"often", often}});
}
