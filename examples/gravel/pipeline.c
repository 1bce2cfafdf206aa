/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several fragments with one handshake (Danalis et al. 2008, Figures 1 d and 2 C): the loop that
 * fills the array is cut into strips, and each strip is under way while the next one is computed.
 */
#include "common.h"

enum { size = 120000, strip = 20000, rounds = 10, tag = 5 };
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
    gravel_request requests[2];
    gravel_buffer buffer;
    check(gravel_post_recv_buffer_rdma(previous, incoming, sizeof incoming, tag, &requests[0]));
    for (int start = 0; start < size; start += strip) {
      for (int i = start; i < start + strip; ++i)
        outgoing[i] = rank + 10.0 * round + 1e-6 * i;
      if (start == 0) check(gravel_wait_recv_buffer(next, tag, &buffer));
      check(gravel_post_os_put(buffer, &outgoing[start], strip * sizeof(double),
                               (size_t)start * sizeof(double), NULL));
    }
    check(gravel_send_fin(buffer, &requests[1]));
    check(gravel_waitall(2, requests));
    for (int i = 0; i < size; ++i)
      wrong += incoming[i] != previous + 10.0 * round + 1e-6 * i;
  }

  check(gravel_finalize());
  int all_wrong;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("pipeline: %d ranks, %d rounds of %d strips, %d wrong values\n", ranks, rounds,
           size / strip, all_wrong);
  MPI_Finalize();
  return wrong != 0;
}
