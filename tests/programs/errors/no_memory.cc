// SPDX-License-Identifier: BSD-3-Clause
// A rank has no memory for messages that it did not expect, while it waits in a collective: the
// collective is not disturbed, and each message whose data are lost is an error of its own receive.
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

// Sent by rank 2 before rank 0 expects them.
void send_flood(const std::vector<int>& junk) {
  for (int i = 0; i < flood; ++i)
    OK(MPI_Send(junk.data(), static_cast<int>(junk.size()), MPI_INT, 0, 1, MPI_COMM_WORLD));
}

// How many of them have been lost; the others are as they were sent, and all in order.
int receive_flood(const std::vector<int>& junk) {
  int lost = 0;
  for (int i = 0; i < flood; ++i) {
    std::vector<int> got(junk.size());
    const int code = MPI_Recv(got.data(), static_cast<int>(got.size()), MPI_INT, 2, 1,
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    lost += code == MPI_SUCCESS ? 0 : 1;
    if (code == MPI_SUCCESS)
      CHECK(got == junk);
    else
      FAILS(MPI_ERR_NO_MEM, code);
  }
  return lost;
}

void a_collective_is_not_disturbed() {
  if (!check::is_macadam() || check::size != 3 || !rma::one_node()) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Comm pair = MPI_COMM_NULL;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank == 2 ? MPI_UNDEFINED : 0, 0, &pair));
  const std::vector<int> junk(bytes / sizeof(int), 7);
  // The records of as many messages: only their data will have no room.
  if (check::rank == 2) {
    send_flood({});
    check::token_send(0);
    check::token_recv(0);
    send_flood(junk);
    check::token_send(1);
    return;
  }
  if (check::rank == 0) {
    check::token_recv(2);
    CHECK_EQUAL(receive_flood({}), 0);
  }
  std::vector<int> data(1000, -1);
  const auto count = static_cast<int>(data.size());
  OK(MPI_Bcast(data.data(), count, MPI_INT, 1, pair)); // they are connected
  if (check::rank == 1) {
    check::token_recv(2);
    std::iota(data.begin(), data.end(), 0);
    OK(MPI_Bcast(data.data(), count, MPI_INT, 1, pair));
  } else {
    check::token_send(2);
    const rlim_t before = limit_addresses(mapped_bytes() + mib);
    const int code = MPI_Bcast(data.data(), count, MPI_INT, 1, pair);
    limit_addresses(before);
    OK(code);
    for (int i = 0; i < count; ++i)
      CHECK_EQUAL(data[static_cast<std::size_t>(i)], i);
    const int lost = receive_flood(junk);
    CHECK(lost > 0);
    CHECK(lost < flood);
  }
  int sum = 0;
  OK(MPI_Allreduce(&check::rank, &sum, 1, MPI_INT, MPI_SUM, pair));
  CHECK_EQUAL(sum, 1);
  OK(MPI_Comm_free(&pair));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"a_collective_is_not_disturbed", a_collective_is_not_disturbed}});
}
