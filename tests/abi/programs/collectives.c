/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives through the ABI: in place, nonblocking, persistent, large counts, varying counts. */
#include "check.h"

enum { most = 16 };
static int rank, size;

static void rooted(void) {
  int value = rank == 1 ? 99 : 0, all[most], mine = rank * rank;
  MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
  CHECK(value == 99);
  if (rank == 0) {
    all[0] = 0;
    MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < size; ++i)
      CHECK(all[i] == i * i);
  } else {
    MPI_Gather(&mine, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
  }
  MPI_Scatter(all, 1, MPI_INT, &value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(value == rank * rank);
}

static void symmetric(void) {
  double sum = rank + 0.5;
  int counts[most], displs[most], all[most * most], mine[most], total = 0;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2 + 0.5 * size);
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1;
    displs[i] = total;
    total += counts[i];
  }
  for (int i = 0; i <= rank; ++i)
    mine[i] = rank;
  MPI_Allgatherv(mine, rank + 1, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < counts[i]; ++j)
      CHECK(all[displs[i] + j] == i);
  struct {
    double value;
    int index;
  } best = {rank == 1 ? -3.0 : rank, rank};
  MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  CHECK(best.value == -3.0 && best.index == 1);
}

static void requests(void) {
  long long sent[most], got[most], prefix = 0, one = 1;
  MPI_Request request;
  for (int i = 0; i < size; ++i)
    sent[i] = 100 * rank + i;
  MPI_Ialltoall_c(sent, 1, MPI_LONG_LONG, got, 1, MPI_LONG_LONG, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < size; ++i)
    CHECK(got[i] == 100 * i + rank);
  MPI_Scan_init(&one, &prefix, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int turn = 1; turn <= 3; ++turn) {
    one = turn;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(prefix == (long long)turn * (rank + 1) && request != MPI_REQUEST_NULL);
  }
  MPI_Request_free(&request);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  CHECK(provided >= MPI_THREAD_FUNNELED);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size > 1 && size <= most);
  rooted();
  symmetric();
  requests();
  finish("collectives");
  return 0;
}
