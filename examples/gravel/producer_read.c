/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Producer-initiated read (Danalis et al. 2008, Figure 1 c), on a ring where every rank sends
 * before it can know where to receive: it announces the data that are ready, and the next rank gets
 * them when it has found out where they shall go. */
#include "common.h"

#include <stdlib.h>

enum { most = 50000, rounds = 8, tag = 11 };
static double outgoing[most];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int previous = (rank + ranks - 1) % ranks, next = (rank + 1) % ranks;

  check(gravel_init(MPI_COMM_WORLD));
  check(gravel_register(outgoing, sizeof outgoing));

  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const int count = 1000 * (round + 1) + rank; /* only the producer knows */
    for (int i = 0; i < count; ++i)
      outgoing[i] = rank + 10.0 * round + 1e-6 * i;
    gravel_request sent, got, fin;
    gravel_buffer buffer;
    check(gravel_post_send_buffer_rdma(next, outgoing, sizeof(double) * (size_t)count, tag, &sent));

    size_t bytes;
    check(gravel_wait_send_buffer(previous, tag, &buffer));
    check(gravel_get_buffer(buffer, NULL, NULL, &bytes));
    double* const incoming = malloc(bytes);
    check(gravel_register(incoming, bytes));
    check(gravel_post_os_get(buffer, incoming, bytes, 0, &got));
    /* What needs neither array may be computed here. */
    check(gravel_wait(&got));
    check(gravel_send_fin(buffer, &fin)); /* the producer may have its array back */
    wrong += bytes != sizeof(double) * (size_t)(1000 * (round + 1) + previous);
    for (size_t i = 0; i < bytes / sizeof(double); ++i)
      wrong += incoming[i] != previous + 10.0 * round + 1e-6 * (double)i;
    check(gravel_unregister(incoming));
    free(incoming);

    check(gravel_wait(&fin));
    check(gravel_wait(&sent)); /* `outgoing` may be changed again */
  }

  check(gravel_finalize());
  int all_wrong;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("producer_read: %d ranks, %d rounds, %d wrong values\n", ranks, rounds, all_wrong);
  MPI_Finalize();
  return wrong != 0;
}
