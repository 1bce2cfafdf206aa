/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rank that has called gravel_finalize(), while its program goes on: whoever waits for it or
 * tests gets an error, and it holds up nobody's end. */
#include "check.h"

static double memory[1000];

static void start(void) {
  OK(gravel_init(MPI_COMM_WORLD));
  OK(gravel_register(memory, sizeof memory));
}

static void who_has_left_is_missed(void) {
  gravel_request received;
  start();
  if (rank != 1) OK(gravel_post_recv_buffer_rdma(1, memory, sizeof memory, 1, &received));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone", gravel_wait(&received));
    REFUSED(GRAVEL_ERR_PEER, "rank 1 is gone", gravel_promise_recv_buffers(1, 8, 1, 1));
    /* Rank 2, which this one has never met, leaves when it knows as much. */
    REFUSED(GRAVEL_ERR_PEER, "all other ranks are gone",
            gravel_wait_send_request(GRAVEL_ANY_SOURCE, GRAVEL_ANY_TAG, NULL, NULL, NULL));
  }
  if (rank == 2) {
    int flag = 0, code;
    while ((code = gravel_test(&received, &flag)) == GRAVEL_SUCCESS) {
      EXPECT(flag == 0);
      usleep(1000);
    }
    EXPECT(code == GRAVEL_ERR_PEER && flag == 1 && received == GRAVEL_REQUEST_NULL);
  }
  OK(gravel_finalize());
  MPI_Barrier(MPI_COMM_WORLD);
}

/* ... and what it had to say is still heard, when it is known to be gone. */
static void last_words_are_heard(void) {
  gravel_buffer none;
  int from;
  size_t bytes;
  start();
  if (rank != 1) {
    OK(gravel_post_send_request_rdma(1, (size_t)rank, rank, NULL));
    OK(gravel_finalize());
  } else {
    REFUSED(GRAVEL_ERR_PEER, "rank 0 is gone", gravel_wait_recv_buffer(0, 1, &none));
    REFUSED(GRAVEL_ERR_PEER, "rank 2 is gone", gravel_wait_recv_buffer(2, 1, &none));
    OK(gravel_wait_send_request(2, 2, &from, NULL, &bytes));
    EXPECT(from == 2 && bytes == 2);
    OK(gravel_wait_send_request(GRAVEL_ANY_SOURCE, GRAVEL_ANY_TAG, &from, NULL, &bytes));
    EXPECT(from == 0 && bytes == 0);
    OK(gravel_finalize());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* More than the ledger of rank 1 has room for, which is not in Gravel meanwhile. */
static void promises_need_not_be_kept(void) {
  start();
  if (rank == 0) {
    for (int tag = 0; tag < 40; ++tag)
      OK(gravel_promise_recv_buffers(1, 8, tag, 3));
    OK(gravel_finalize());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) OK(gravel_finalize());
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(ranks == 3);
  who_has_left_is_missed();
  last_words_are_heard();
  promises_need_not_be_kept();
  start();
  return end("left");
}
