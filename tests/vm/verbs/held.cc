// SPDX-License-Identifier: BSD-3-Clause
// Connects every rank with every other by short messages, so that the report at the end tells the
// memory of a process that is connected to all.
#include "check.h"

namespace {

void talk_to_all() {
  for (int distance = 1; distance < check::size; ++distance) {
    const int to = (check::rank + distance) % check::size;
    const int from = (check::rank + check::size - distance) % check::size;
    int out = check::rank, in = -1;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 1, &in, 1, MPI_INT, from, 1, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK_EQUAL(in, from);
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"talk_to_all", talk_to_all}});
}
