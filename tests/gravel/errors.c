/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bad input: an error code and a message that says what was wrong, and nothing is changed: what was
 * right goes on and arrives whole. */
#include "check.h"

#include <sys/resource.h>

enum { bytes = 1000 };
static unsigned char memory[bytes], other[bytes], unknown[bytes];

static void before_start(void) {
  gravel_request request = GRAVEL_REQUEST_NULL;
  REFUSED(GRAVEL_ERR_STATE, "gravel_init", gravel_register(memory, bytes));
  REFUSED(GRAVEL_ERR_STATE, "gravel_init", gravel_wait(&request));
  REFUSED(GRAVEL_ERR_STATE, "gravel_init", gravel_finalize());
  REFUSED(GRAVEL_ERR_ARGUMENT, "MPI_COMM_NULL", gravel_init(MPI_COMM_NULL));
}

/* Files may not be as long as the segment of shared memory, which is sparse. */
static void without_long_files(void) {
  struct rlimit before, low;
  EXPECT(getrlimit(RLIMIT_FSIZE, &before) == 0);
  low = before;
  low.rlim_cur = 1 << 30;
  EXPECT(setrlimit(RLIMIT_FSIZE, &low) == 0);
  REFUSED(GRAVEL_ERR_SYSTEM, "file size limit", gravel_init(MPI_COMM_WORLD));
  EXPECT(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

static void of_memory(void) {
  REFUSED(GRAVEL_ERR_ARGUMENT, "no memory", gravel_register(NULL, bytes));
  REFUSED(GRAVEL_ERR_ARGUMENT, "no memory", gravel_register(memory, 0));
  OK(gravel_register(memory, bytes));
  REFUSED(GRAVEL_ERR_MEMORY, "overlap", gravel_register(memory, bytes));
  REFUSED(GRAVEL_ERR_MEMORY, "overlap", gravel_register(memory + 999, 1));
  REFUSED(GRAVEL_ERR_MEMORY, "no registered memory begins", gravel_unregister(memory + 1));
  REFUSED(GRAVEL_ERR_MEMORY, "no registered memory begins", gravel_unregister(unknown));
  OK(gravel_register(other, bytes));
}

static void of_arguments(int peer) {
  gravel_request request;
  gravel_buffer buffer;
  int flag;
  REFUSED(GRAVEL_ERR_STATE, "already", gravel_init(MPI_COMM_WORLD));
  REFUSED(GRAVEL_ERR_ARGUMENT, "ranks of gravel_init's communicator are 0 to",
          gravel_post_recv_buffer_rdma(ranks, memory, bytes, 0, &request));
  REFUSED(GRAVEL_ERR_ARGUMENT, "rank -1",
          gravel_post_recv_buffer_rdma(GRAVEL_ANY_SOURCE, memory, bytes, 0, &request));
  REFUSED(GRAVEL_ERR_ARGUMENT, "tag is -1",
          gravel_post_recv_buffer_rdma(peer, memory, bytes, -1, &request));
  REFUSED(GRAVEL_ERR_ARGUMENT, "tag is -2",
          gravel_post_send_request_rdma(peer, bytes, GRAVEL_ANY_TAG, &request));
  REFUSED(GRAVEL_ERR_ARGUMENT, "request is a null pointer",
          gravel_post_recv_buffer_rdma(peer, memory, bytes, 0, NULL));
  REFUSED(GRAVEL_ERR_ARGUMENT, "flag is a null pointer",
          gravel_test_recv_buffer(peer, 0, &buffer, NULL));
  REFUSED(GRAVEL_ERR_ARGUMENT, "tag is -7", gravel_test_recv_buffer(peer, -7, &buffer, &flag));
  REFUSED(GRAVEL_ERR_MEMORY, "not registered",
          gravel_post_recv_buffer_rdma(peer, unknown, bytes, 0, &request));
  REFUSED(GRAVEL_ERR_MEMORY, "beyond the registered memory",
          gravel_post_recv_buffer_rdma(peer, memory + 1, bytes, 0, &request));
  REFUSED(GRAVEL_ERR_MEMORY, "not registered",
          gravel_post_send_buffer_rdma(peer, unknown, bytes, 0, &request));
  REFUSED(GRAVEL_ERR_ARGUMENT, "no receive buffers", gravel_promise_recv_buffers(peer, 8, 6, 0));
  REFUSED(GRAVEL_ERR_ARGUMENT, "tag is -1", gravel_promise_recv_buffers(peer, 8, -1, 1));
  REFUSED(GRAVEL_ERR_ARGUMENT, "ranks of gravel_init's communicator are 0 to",
          gravel_promise_recv_buffers(ranks, 8, 6, 1));
  REFUSED(GRAVEL_ERR_ARGUMENT, "-1 bytes", gravel_promise_recv_buffers(peer, (size_t)-1, 6, 1));
  REFUSED(GRAVEL_ERR_ARGUMENT, "-1 receive buffers",
          gravel_promise_recv_buffers(peer, 8, 6, (size_t)-1));
  REFUSED(GRAVEL_ERR_ARGUMENT, "-5 bytes",
          gravel_post_send_request_rdma(peer, (size_t)-5, 0, &request));
  request = 12345;
  flag = 7;
  REFUSED(GRAVEL_ERR_REQUEST, "no request", gravel_wait(&request));
  REFUSED(GRAVEL_ERR_REQUEST, "no request", gravel_test(&request, &flag));
  EXPECT(request == 12345 && flag == 7);
  REFUSED(GRAVEL_ERR_ARGUMENT, "-1 requests", gravel_waitall(-1, &request));
  REFUSED(GRAVEL_ERR_ARGUMENT, "requests is a null pointer", gravel_waitall(2, NULL));
  OK(gravel_waitall(0, NULL));
  REFUSED(GRAVEL_ERR_BUFFER, "no announced buffer", gravel_post_os_put(77, memory, 1, 0, &request));
  REFUSED(GRAVEL_ERR_BUFFER, "no announced buffer", gravel_send_fin(77, &request));
  REFUSED(GRAVEL_ERR_BUFFER, "no announced buffer", gravel_get_buffer(77, NULL, NULL, NULL));
}

/* In the middle of an exchange; at the end it has worked as if nothing had been. */
static void of_the_producer(int consumer) {
  gravel_buffer buffer;
  gravel_request put, fin, copy;
  OK(gravel_wait_recv_buffer(consumer, 1, &buffer));
  REFUSED(GRAVEL_ERR_MEMORY, "not registered", gravel_post_os_put(buffer, unknown, 10, 0, &put));
  REFUSED(GRAVEL_ERR_RANGE, "outside of the 1000 bytes",
          gravel_post_os_put(buffer, other, bytes, 1, &put));
  REFUSED(GRAVEL_ERR_RANGE, "outside of", gravel_post_os_put(buffer, other, 1, bytes, &put));
  REFUSED(GRAVEL_ERR_RANGE, "outside of", gravel_post_os_put(buffer, other, 2, (size_t)-1, &put));
  REFUSED(GRAVEL_ERR_BUFFER, "not got from", gravel_post_os_get(buffer, other, 1, 0, &put));
  REFUSED(GRAVEL_ERR_INCOMPLETE, "0 of the 1000 bytes", gravel_send_fin(buffer, &fin));
  memset(other, 'a', bytes);
  OK(gravel_post_os_put(buffer, other, 600, 0, &put));
  copy = put;
  OK(gravel_wait(&put));
  REFUSED(GRAVEL_ERR_REQUEST, "waited for already", gravel_wait(&copy));
  OK(gravel_post_os_put(buffer, other, 100, 900, NULL));
  OK(gravel_post_os_put(buffer, other, 100, 550, NULL)); /* again: its place is written twice */
  REFUSED(GRAVEL_ERR_INCOMPLETE, "those at offset 650", gravel_send_fin(buffer, &fin));
  REFUSED(GRAVEL_ERR_INCOMPLETE, "1 announced buffer", gravel_finalize());
  OK(gravel_post_os_put(buffer, other, 250, 650, NULL));
  REFUSED(GRAVEL_ERR_RANGE, "after all 1000 bytes", gravel_post_os_put(buffer, other, 1, 0, &put));
  OK(gravel_post_os_put(buffer, other, 0, 1000, NULL)); /* of nothing */
  OK(gravel_send_fin(buffer, &fin));
  REFUSED(GRAVEL_ERR_BUFFER, "FIN was sent", gravel_send_fin(buffer, &copy));
  REFUSED(GRAVEL_ERR_BUFFER, "FIN was sent", gravel_post_os_put(buffer, other, 1, 0, &put));
  OK(gravel_wait(&fin));
  OK(gravel_wait(&fin)); /* null by now */
}

static void of_the_consumer(int producer) {
  gravel_request received, second;
  memset(memory, 'z', bytes);
  OK(gravel_post_recv_buffer_rdma(producer, memory, bytes, 1, &received));
  REFUSED(GRAVEL_ERR_MEMORY, "in use by 1 operations", gravel_unregister(memory));
  REFUSED(GRAVEL_ERR_INCOMPLETE, "request", gravel_finalize());
  second = received;
  OK(gravel_wait(&received));
  REFUSED(GRAVEL_ERR_REQUEST, "waited for already", gravel_wait(&second));
  for (int i = 0; i < bytes; ++i)
    EXPECT(memory[i] == 'a');
}

/* Two buffers, of which the second comes in time too when the first was posted wrongly. */
static void of_promises(int peer) {
  gravel_request received[2], request;
  gravel_buffer buffer;
  if (rank == 0) {
    OK(gravel_promise_recv_buffers(peer, 10, 6, 2));
    REFUSED(GRAVEL_ERR_ARGUMENT, "2 receive buffers of 10 bytes with tag 6 are promised",
            gravel_promise_recv_buffers(peer, 20, 6, 1));
    REFUSED(GRAVEL_ERR_ARGUMENT, "11 bytes with tag 6",
            gravel_post_recv_buffer_rdma(peer, memory, 11, 6, &request));
    REFUSED(GRAVEL_ERR_MEMORY, "not registered",
            gravel_post_recv_buffer_rdma(peer, unknown, 10, 6, &request));
    OK(gravel_post_recv_buffer_rdma(peer, memory, 10, 6, &received[0]));
    OK(gravel_post_recv_buffer_rdma(peer, memory + 10, 10, 6, &received[1]));
    OK(gravel_waitall(2, received));
    for (int i = 0; i < 20; ++i)
      EXPECT(memory[i] == i / 10);
    return;
  }
  for (int n = 0; n < 2; ++n) {
    size_t told;
    OK(gravel_wait_recv_buffer(peer, 6, &buffer));
    OK(gravel_get_buffer(buffer, NULL, NULL, &told));
    EXPECT(told == 10);
    memset(other, n, 10);
    REFUSED(GRAVEL_ERR_RANGE, "outside of the 10 bytes",
            gravel_post_os_put(buffer, other, 11, 0, &request));
    OK(gravel_post_os_put(buffer, other, 4, 0, NULL));
    REFUSED(GRAVEL_ERR_INCOMPLETE, "4 of the 10 bytes", gravel_send_fin(buffer, &request));
    OK(gravel_post_os_put(buffer, other, 6, 4, NULL));
    REFUSED(GRAVEL_ERR_RANGE, "after all 10 bytes",
            gravel_post_os_put(buffer, other, 1, 0, &request));
    OK(gravel_send_fin(buffer, NULL));
  }
}

static void of_reads(int peer) {
  gravel_request sent, request;
  gravel_buffer buffer;
  if (rank == 0) {
    memset(memory, 'r', bytes);
    OK(gravel_post_send_buffer_rdma(peer, memory, bytes, 2, &sent));
    OK(gravel_wait(&sent));
    return;
  }
  OK(gravel_wait_send_buffer(peer, 2, &buffer));
  REFUSED(GRAVEL_ERR_BUFFER, "not put to", gravel_post_os_put(buffer, other, 1, 0, &request));
  REFUSED(GRAVEL_ERR_RANGE, "outside of", gravel_post_os_get(buffer, other, bytes, 1, &request));
  REFUSED(GRAVEL_ERR_MEMORY, "not registered",
          gravel_post_os_get(buffer, unknown, bytes, 0, &request));
  OK(gravel_post_os_get(buffer, other, bytes, 0, &request));
  OK(gravel_wait(&request));
  for (int i = 0; i < bytes; ++i)
    EXPECT(other[i] == 'r');
  OK(gravel_send_fin(buffer, NULL));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(ranks == 2);
  const int peer = 1 - rank;
  before_start();
  without_long_files();
  OK(gravel_init(MPI_COMM_WORLD));
  of_memory();
  of_arguments(peer);
  if (rank == 0)
    of_the_producer(peer);
  else
    of_the_consumer(peer);
  of_promises(peer);
  of_reads(peer);
  OK(gravel_unregister(memory));
  OK(gravel_unregister(other));
  return end("errors");
}
