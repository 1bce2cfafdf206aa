/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whoever fills promised buffers of a consumer that does not read goes on with others: here the
 * consumer waits for one of these. */
#include "check.h"

enum { bytes = 8000, promised = 100 };
static unsigned char memory[bytes];

static void put(int consumer, int value, gravel_request* fin) {
  gravel_buffer buffer;
  OK(gravel_wait_recv_buffer(consumer, 1, &buffer));
  memset(memory, value, bytes);
  OK(gravel_post_os_put(buffer, memory, bytes, 0, NULL));
  OK(gravel_send_fin(buffer, fin));
  OK(gravel_wait(fin));
}

static void receive(int value) {
  gravel_request received;
  OK(gravel_post_recv_buffer_rdma(1, memory, bytes, 1, &received));
  OK(gravel_wait(&received));
  for (int i = 0; i < bytes; ++i)
    EXPECT(memory[i] == value);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(ranks == 3);
  OK(gravel_init(MPI_COMM_WORLD));
  OK(gravel_register(memory, bytes));
  gravel_request fin;
  if (rank == 0) {
    OK(gravel_promise_recv_buffers(1, bytes, 1, promised));
    MPI_Recv(NULL, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < promised; ++i)
      receive(i);
  } else if (rank == 1) {
    for (int i = 0; i < promised; ++i)
      put(0, i, &fin);
    put(2, 7, &fin);
  } else {
    OK(gravel_promise_recv_buffers(1, bytes, 1, 1));
    receive(7);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  return end("unread");
}
