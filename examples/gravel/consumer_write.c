/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Consumer-initiated write (Danalis et al. 2008, Figure 1 a), on a ring: every rank gets an array
 * from the one before it. The receiver says first where the data shall go, and computes; so when
 * the data are ready, the sender writes them there without any delay. */
#include "common.h"

enum { size = 100000, rounds = 10, tag = 7 };
static double outgoing[size], incoming[size];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int previous = (rank + ranks - 1) % ranks, next = (rank + 1) % ranks;

  check(gravel_init(MPI_COMM_WORLD));
  check(gravel_register(outgoing, sizeof outgoing));
  check(gravel_register(incoming, sizeof incoming));

  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    gravel_request received, sent;
    gravel_buffer buffer;
    check(gravel_post_recv_buffer_rdma(previous, incoming, sizeof incoming, tag, &received));

    for (int i = 0; i < size; ++i) /* computes while the announcement travels */
      outgoing[i] = rank + 10.0 * round + 1e-6 * i;

    check(gravel_wait_recv_buffer(next, tag, &buffer));
    check(gravel_post_os_put(buffer, outgoing, sizeof outgoing, 0, NULL));
    check(gravel_send_fin(buffer, &sent));
    /* What needs neither array may be computed here. */
    check(gravel_wait(&received)); /* the FIN has come, so the data are there */
    for (int i = 0; i < size; ++i)
      wrong += incoming[i] != previous + 10.0 * round + 1e-6 * i;
    check(gravel_wait(&sent)); /* `outgoing` may be changed again */
  }

  check(gravel_finalize());
  int all_wrong;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("consumer_write: %d ranks, %d rounds, %d wrong values\n", ranks, rounds, all_wrong);
  MPI_Finalize();
  return wrong != 0;
}
