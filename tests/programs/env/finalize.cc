// SPDX-License-Identifier: BSD-3-Clause
// Finalize: attributes of MPI_COMM_SELF go first, in reverse order; what is allowed afterwards.
#include "check.h"

#include <atomic>

namespace {

std::vector<long> deleted;

int note(MPI_Comm comm, int, void* value, void*) {
  // MPI still works in here.
  int rank = -1, sum = 0, finalized = 1;
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Finalized(&finalized));
  CHECK(!finalized);
  OK(MPI_Allreduce(&check::rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(sum, check::size * (check::size - 1) / 2);
  deleted.push_back(*static_cast<long*>(value));
  return MPI_SUCCESS;
}

} // namespace

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &check::size));
  check::part = "attributes of MPI_COMM_SELF";
  static long numbers[3] = {0, 1, 2};
  for (long& number : numbers) {
    int key = MPI_KEYVAL_INVALID;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note, &key, nullptr));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &number));
    OK(MPI_Comm_free_keyval(&key));
  }
  // A message that the receiver takes late must not be lost with its sender's Finalize.
  check::part = "late receiver";
  std::vector<unsigned char> data(20000);
  if (check::size > 1 && check::rank == 0) {
    check::fill(data.data(), data.size(), 3);
    MPI_Request request;
    OK(MPI_Isend(data.data(), 20000, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (check::rank == 1) {
    check::sleep_ms(50);
    OK(MPI_Recv(data.data(), 20000, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    HOLDS(data.data(), data.size(), 3);
  }
  OK(MPI_Finalize());

  int flag = 0, version = 0, subversion = 0;
  bool good = deleted == std::vector<long>{2, 1, 0};
  good = good && MPI_Finalized(&flag) == MPI_SUCCESS && flag;
  good = good && MPI_Initialized(&flag) == MPI_SUCCESS && flag;
  good = good && MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == 5;
  MPI_Info info;
  good = good && MPI_Info_create(&info) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS;
  if (!good) {
    std::fprintf(stderr, "rank %d: wrong order of deletion or state after MPI_Finalize\n",
                 check::rank);
    return 1;
  }
  if (check::rank == 0) std::printf("%s: passed on %d ranks\n", argv[0], check::size);
  return 0;
}
