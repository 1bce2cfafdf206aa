/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Producer-initiated write (Danalis et al. 2008, Figure 1 b): rank 0 takes a block from whichever
 * rank has one. It cannot know who will be next, so the producer says first that data will come;
 * then rank 0 announces memory to that one. */
#include "common.h"

enum { size = 20000, blocks = 5, tag = 3 };
static double block[size];

static void produce(int rank) {
  for (int n = 0; n < blocks; ++n) {
    gravel_request sent;
    gravel_buffer buffer;
    check(gravel_post_send_request_rdma(0, sizeof block, tag, NULL));
    for (int i = 0; i < size; ++i) /* computes while rank 0 answers */
      block[i] = 100.0 * rank + n + 1e-6 * i;
    check(gravel_wait_recv_buffer(0, tag, &buffer));
    check(gravel_post_os_put(buffer, block, sizeof block, 0, NULL));
    check(gravel_send_fin(buffer, &sent));
    check(gravel_wait(&sent));
  }
}

/* Returns how many values are wrong. */
static int consume(int producers) {
  int next[1024] = {0}; /* block of each producer */
  int wrong = 0;
  for (int n = 0; n < producers * blocks; ++n) {
    gravel_request received;
    int producer;
    size_t bytes;
    check(gravel_wait_send_request(GRAVEL_ANY_SOURCE, tag, &producer, NULL, &bytes));
    wrong += bytes != sizeof block;
    check(gravel_post_recv_buffer_rdma(producer, block, sizeof block, tag, &received));
    check(gravel_wait(&received));
    for (int i = 0; i < size; ++i)
      wrong += block[i] != 100.0 * producer + next[producer % 1024] + 1e-6 * i;
    ++next[producer % 1024];
  }
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  check(gravel_init(MPI_COMM_WORLD));
  check(gravel_register(block, sizeof block));
  if (rank == 0)
    wrong = consume(ranks - 1);
  else
    produce(rank);
  check(gravel_finalize());
  if (rank == 0)
    printf("producer_write: %d ranks, %d blocks each, %d wrong values\n", ranks, blocks, wrong);
  MPI_Finalize();
  return wrong != 0;
}
