/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer that is gone: whoever waits for it gets an error, and the others go on. After
 * MPI_Finalize, since mpiexec does not mind that a process ends then, and Gravel does not need MPI.
 */
#include "check.h"

static double memory[1000], other[1000];

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(ranks == 3);
  OK(gravel_init(MPI_COMM_WORLD));
  OK(gravel_register(memory, sizeof memory));
  OK(gravel_register(other, sizeof other));
  MPI_Finalize();

  gravel_request received, sent;
  gravel_buffer buffer;
  if (rank == 0) OK(gravel_promise_recv_buffers(2, 40, 4, 3));
  if (rank == 1) { /* announces, and ends in the middle of things */
    OK(gravel_post_recv_buffer_rdma(0, memory, sizeof memory, 1, &received));
    OK(gravel_wait_recv_buffer(0, 2, &buffer));
    OK(gravel_post_os_put(buffer, memory, 8, 0, NULL));
    _exit(0);
  }
  if (rank == 2) {
    for (int i = 0; i < 1000; ++i)
      other[i] = i;
    for (int i = 0; i < 2; ++i) { /* promised, and not posted yet */
      OK(gravel_wait_recv_buffer(0, 4, &buffer));
      OK(gravel_post_os_put(buffer, other + 10 * i, 40, 0, NULL));
      OK(gravel_send_fin(buffer, NULL));
    }
    OK(gravel_wait_recv_buffer(0, 3, &buffer));
    OK(gravel_post_os_put(buffer, other, sizeof other, 0, NULL));
    OK(gravel_send_fin(buffer, NULL));
    OK(gravel_finalize());
    return 0;
  }
  OK(gravel_post_recv_buffer_rdma(1, memory, sizeof memory, 2, &received));
  OK(gravel_wait_recv_buffer(1, 1, &buffer));
  REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone", gravel_wait(&received));
  EXPECT(received == GRAVEL_REQUEST_NULL);
  REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone",
          gravel_post_os_put(buffer, other, sizeof other, 0, &sent));
  REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone",
          gravel_post_recv_buffer_rdma(1, memory, sizeof memory, 2, &received));
  gravel_buffer none;
  REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone", gravel_wait_recv_buffer(1, 1, &none));
  REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone", gravel_send_fin(buffer, NULL));

  OK(gravel_post_recv_buffer_rdma(2, memory, sizeof memory, 3, &received));
  OK(gravel_wait(&received));
  for (int i = 0; i < 1000; ++i)
    EXPECT(memory[i] == i);
  /* What has come from one who is gone is there. */
  REFUSED(GRAVEL_ERR_PEER, "rank 2 is gone", gravel_wait_recv_buffer(2, 9, &none));
  for (int i = 0; i < 2; ++i) {
    OK(gravel_post_recv_buffer_rdma(2, memory, 40, 4, &received));
    OK(gravel_wait(&received));
    EXPECT(memory[0] == 10 * i && memory[4] == 10 * i + 4 && memory[5] == 5);
  }
  REFUSED(GRAVEL_ERR_PEER, "rank 2 is gone",
          gravel_post_recv_buffer_rdma(2, memory, 40, 4, &received));
  OK(gravel_finalize());
  printf("gone: %d ranks agree\n", ranks);
  return 0;
}
