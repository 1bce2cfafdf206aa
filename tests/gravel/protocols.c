/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All protocols between all pairs at once: many in flight, several tags, fragments in any order,
 * more announcements than a ledger holds, any source. */
#include "check.h"

enum { most_ranks = 8, in_flight = 40, sizes = 6, largest = 300000 };
static const size_t size_of[sizes] = {0, 1, 63, 4096, 70001, largest};

static unsigned char *from, *to; /* a block of `largest` for each peer and operation */

static unsigned char pattern(int source, int target, int tag, size_t i) {
  return (unsigned char)(source * 7 + target * 13 + tag * 31 + (int)(i % 251));
}
static void fill(unsigned char* block, size_t bytes, int target, int tag) {
  for (size_t i = 0; i < bytes; ++i)
    block[i] = pattern(rank, target, tag, i);
}
static void expect(const unsigned char* block, size_t bytes, int source, int tag) {
  for (size_t i = 0; i < bytes; ++i)
    EXPECT(block[i] == pattern(source, rank, tag, i));
  EXPECT(block[bytes] == 0xEE); /* nothing behind the end */
}

/* More announcements than a ledger holds, and first is taken what was announced last. */
static void what_came_last_is_taken_first(void) {
  enum { before = 40 };
  gravel_request received[before + 1], sent[before + 1];
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  gravel_buffer buffer;
  for (int tag = 0; tag <= before; ++tag) {
    OK(gravel_post_recv_buffer_rdma(next, to + tag, 1, tag, &received[tag]));
    OK(gravel_post_send_buffer_rdma(next, from + tag, 1, tag, &sent[tag]));
    OK(gravel_post_send_request_rdma(next, 1, tag, NULL));
  }
  for (int tag = before; tag >= 0; --tag) {
    OK(gravel_wait_recv_buffer(previous, tag, &buffer));
    OK(gravel_post_os_put(buffer, from, 1, 0, NULL));
    OK(gravel_send_fin(buffer, NULL));
    OK(gravel_wait_send_request(previous, tag, NULL, NULL, NULL));
    OK(gravel_wait_send_buffer(previous, tag, &buffer));
    OK(gravel_send_fin(buffer, NULL));
  }
  OK(gravel_waitall(before + 1, received));
  OK(gravel_waitall(before + 1, sent));
}

/* Everyone announces to everyone; the tags are taken in another order than they were posted. */
static void consumer_writes(size_t bytes, int fragments) {
  gravel_request received[most_ranks][4], sent[most_ranks][4];
  memset(to, 0xEE, (size_t)ranks * 4 * (largest + 1));
  for (int peer = 0; peer < ranks; ++peer) {
    for (int tag = 0; tag < 4; ++tag)
      OK(gravel_post_recv_buffer_rdma(peer, to + (size_t)(peer * 4 + tag) * (largest + 1), bytes,
                                      tag, &received[peer][tag]));
  }
  for (int tag = 3; tag >= 0; --tag) {
    for (int peer = 0; peer < ranks; ++peer) {
      unsigned char* const block = from + (size_t)(peer * 4 + tag) * (largest + 1);
      gravel_buffer buffer;
      fill(block, bytes, peer, tag);
      OK(gravel_wait_recv_buffer(peer, tag, &buffer));
      int announcer, found;
      size_t announced;
      OK(gravel_get_buffer(buffer, &announcer, &found, &announced));
      EXPECT(announcer == peer && found == tag && announced == bytes);
      for (int fragment = fragments - 1; fragment >= 0; --fragment) { /* the last one first */
        const size_t begin = bytes * (size_t)fragment / (size_t)fragments;
        const size_t stop = bytes * (size_t)(fragment + 1) / (size_t)fragments;
        gravel_request put;
        OK(gravel_post_os_put(buffer, block + begin, stop - begin, begin,
                              fragment % 2 == 0 ? &put : NULL));
        if (fragment % 2 == 0) OK(gravel_wait(&put));
      }
      OK(gravel_send_fin(buffer, &sent[peer][tag]));
    }
  }
  for (int peer = 0; peer < ranks; ++peer) {
    OK(gravel_waitall(4, received[peer]));
    OK(gravel_waitall(4, sent[peer]));
    for (int tag = 0; tag < 4; ++tag)
      expect(to + (size_t)(peer * 4 + tag) * (largest + 1), bytes, peer, tag);
  }
}

/* Far more than a ledger holds are posted before any is taken: they wait, and come in order. */
static void many(void) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  gravel_request received[in_flight], sent[in_flight];
  memset(to, 0xEE, (size_t)in_flight * 1001);
  for (int i = 0; i < in_flight; ++i)
    OK(gravel_post_recv_buffer_rdma(previous, to + i * 1001, 1000, i % 3, &received[i]));
  for (int i = 0; i < in_flight; ++i) {
    gravel_buffer buffer;
    fill(from + i * 1001, 1000, next, i);
    OK(gravel_wait_recv_buffer(next, GRAVEL_ANY_TAG, &buffer));
    int tag;
    OK(gravel_get_buffer(buffer, NULL, &tag, NULL));
    EXPECT(tag == i % 3);
    OK(gravel_post_os_put(buffer, from + i * 1001, 1000, 0, NULL));
    OK(gravel_send_fin(buffer, &sent[i]));
  }
  OK(gravel_waitall(in_flight, received));
  OK(gravel_waitall(in_flight, sent));
  for (int i = 0; i < in_flight; ++i)
    expect(to + i * 1001, 1000, previous, i);
}

/* Rank 0 is served by whoever comes; the others answer its announcements. */
static void any_source_writes(size_t bytes) {
  if (rank != 0) {
    gravel_buffer buffer;
    gravel_request left;
    fill(from, bytes, 0, rank);
    OK(gravel_post_send_request_rdma(0, bytes, rank, &left));
    OK(gravel_wait_recv_buffer(0, rank, &buffer));
    OK(gravel_post_os_put(buffer, from, bytes, 0, NULL));
    OK(gravel_send_fin(buffer, NULL));
    OK(gravel_wait(&left));
    return;
  }
  int seen[most_ranks] = {0};
  for (int n = 1; n < ranks; ++n) {
    int source, tag, flag = 0;
    size_t told;
    while (!flag)
      OK(gravel_test_send_request(GRAVEL_ANY_SOURCE, GRAVEL_ANY_TAG, &source, &tag, &told, &flag));
    EXPECT(source > 0 && source < ranks && tag == source && told == bytes && !seen[source]);
    seen[source] = 1;
    memset(to, 0xEE, bytes + 1);
    gravel_request received;
    OK(gravel_post_recv_buffer_rdma(source, to, bytes, tag, &received));
    for (flag = 0; !flag;)
      OK(gravel_test(&received, &flag));
    EXPECT(received == GRAVEL_REQUEST_NULL);
    expect(to, bytes, source, tag);
  }
}

/* Everyone promises to everyone. In every other round rank 0 posts only when it has filled those of
 * the others. */
static void promised(size_t bytes, int fragments) {
  for (int peer = 0; peer < ranks; ++peer)
    OK(gravel_promise_recv_buffers(peer, bytes, 7, in_flight));
  memset(to, 0xEE, (size_t)ranks * (largest + 1));
  for (int n = 0; n < in_flight; ++n) {
    gravel_request received[most_ranks], sent[most_ranks];
    for (int late = 0; late < 2; ++late) {
      for (int peer = 0; peer < ranks; ++peer) {
        const int waits = rank == 0 && peer != rank && n % 2 == 1;
        if (late == waits)
          OK(gravel_post_recv_buffer_rdma(peer, to + (size_t)peer * (largest + 1), bytes, 7,
                                          &received[peer]));
      }
      for (int peer = 0; late == 0 && peer < ranks; ++peer) {
        unsigned char* const block = from + (size_t)peer * (largest + 1);
        gravel_buffer buffer;
        fill(block, bytes, peer, n);
        OK(gravel_wait_recv_buffer(peer, 7, &buffer));
        for (int fragment = 0; fragment < fragments; ++fragment) {
          const size_t begin = bytes * (size_t)fragment / (size_t)fragments;
          const size_t stop = bytes * (size_t)(fragment + 1) / (size_t)fragments;
          OK(gravel_post_os_put(buffer, block + begin, stop - begin, begin, NULL));
        }
        OK(gravel_send_fin(buffer, &sent[peer]));
      }
    }
    OK(gravel_waitall(ranks, received));
    OK(gravel_waitall(ranks, sent));
    for (int peer = 0; peer < ranks; ++peer)
      expect(to + (size_t)peer * (largest + 1), bytes, peer, n);
  }
}

/* Everyone announces ready data to everyone, and gets what the others have, from any source. */
static void producer_reads(size_t bytes, int fragments) {
  gravel_request sent[most_ranks];
  for (int peer = 0; peer < ranks; ++peer) {
    unsigned char* const block = from + (size_t)peer * (largest + 1);
    fill(block, bytes, peer, 5);
    OK(gravel_post_send_buffer_rdma(peer, block, bytes, 5, &sent[peer]));
  }
  for (int n = 0; n < ranks; ++n) {
    gravel_buffer buffer;
    int source;
    size_t told;
    OK(gravel_wait_send_buffer(GRAVEL_ANY_SOURCE, 5, &buffer));
    OK(gravel_get_buffer(buffer, &source, NULL, &told));
    EXPECT(told == bytes);
    memset(to, 0xEE, bytes + 1);
    for (int fragment = 0; fragment < fragments; ++fragment) {
      const size_t begin = bytes * (size_t)fragment / (size_t)fragments;
      const size_t stop = bytes * (size_t)(fragment + 1) / (size_t)fragments;
      OK(gravel_post_os_get(buffer, to + begin, stop - begin, begin, NULL));
    }
    gravel_request fin;
    OK(gravel_send_fin(buffer, &fin)); /* leaves when all gets are over */
    OK(gravel_wait(&fin));
    expect(to, bytes, source, 5);
  }
  OK(gravel_waitall(ranks, sent));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(ranks <= most_ranks);
  const size_t bytes = (size_t)most_ranks * 4 * (largest + 1);
  from = malloc(bytes);
  to = malloc(bytes);
  OK(gravel_init(MPI_COMM_WORLD));
  OK(gravel_register(from, bytes));
  OK(gravel_register(to, bytes));
  for (int i = 0; i < sizes; ++i) {
    consumer_writes(size_of[i], 1);
    consumer_writes(size_of[i], 5);
    any_source_writes(size_of[i]);
    promised(size_of[i], 1);
    promised(size_of[i], 3);
    producer_reads(size_of[i], 1);
    producer_reads(size_of[i], 3);
  }
  many();
  what_came_last_is_taken_first();
  OK(gravel_unregister(from));
  OK(gravel_unregister(to));
  return end("protocols");
}
