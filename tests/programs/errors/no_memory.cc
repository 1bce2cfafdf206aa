// SPDX-License-Identifier: BSD-3-Clause
// A rank has no memory for messages that it did not expect, while it waits in a collective: the
// collective is completed before the error is told, and the rank goes on.
#include "rma/window.h"

#include <sys/resource.h>
#include <unistd.h>

#include <numeric>

namespace {

constexpr rlim_t mib = 1 << 20;
constexpr int flood = 4000, bytes = 8000; // far more than the limit leaves room for

rlim_t mapped_bytes() {
  unsigned long pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  CHECK(file != nullptr && std::fscanf(file, "%lu", &pages) == 1);
  std::fclose(file);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

rlim_t limit_addresses(rlim_t most) {
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
  const rlim_t before = std::exchange(limit.rlim_cur, most);
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  return before;
}

void a_collective_is_completed_first() {
  if (!check::is_macadam() || check::size != 3 || !rma::one_node()) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Comm pair = MPI_COMM_NULL;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank == 2 ? MPI_UNDEFINED : 0, 0, &pair));
  std::vector<int> data(1000, -1);
  const auto count = static_cast<int>(data.size());
  if (check::rank == 2) {
    check::token_recv(0);
    const std::vector<char> junk(bytes);
    for (int i = 0; i < flood; ++i)
      OK(MPI_Send(junk.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    check::token_send(1);
    return;
  }
  OK(MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN));
  OK(MPI_Bcast(data.data(), count, MPI_INT, 1, pair)); // they are connected
  if (check::rank == 1) {
    check::token_recv(2);
    std::iota(data.begin(), data.end(), 0);
    OK(MPI_Bcast(data.data(), count, MPI_INT, 1, pair));
    check::token_recv(0); // what comes while there is no memory may be lost
  } else {
    check::token_send(2);
    const rlim_t before = limit_addresses(mapped_bytes() + mib);
    const int code = MPI_Bcast(data.data(), count, MPI_INT, 1, pair);
    limit_addresses(before);
    check::token_send(1);
    FAILS(MPI_ERR_NO_MEM, code);
    for (int i = 0; i < count; ++i)
      CHECK_EQUAL(data[static_cast<std::size_t>(i)], i);
  }
  int sum = 0;
  OK(MPI_Allreduce(&check::rank, &sum, 1, MPI_INT, MPI_SUM, pair));
  CHECK_EQUAL(sum, 1);
  OK(MPI_Comm_free(&pair));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"a_collective_is_completed_first", a_collective_is_completed_first}});
}
