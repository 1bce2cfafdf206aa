/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gravel: explicit rendezvous beside any MPI with the standard ABI (Danalis et al. 2008). A message
 * is taken apart into calls of its own: announce memory, wait for an announcement, move data, tell
 * the end. Metadata and data are separate, and data are not copied, but for short ones that were
 * promised (gravel_promise_recv_buffers). See docs/gravel.md.
 *
 * Every function returns GRAVEL_SUCCESS or an error code; what was wrong is told by
 * gravel_error_message(), and then nothing has been changed. One thread at a time may be in Gravel.
 * Ranks are those of the communicator given to gravel_init(). */
#ifndef GRAVEL_H
#define GRAVEL_H

#include <mpi.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t gravel_request; /* an operation under way */
typedef int64_t gravel_buffer;  /* a peer's memory that it has announced, until its FIN */

#define GRAVEL_REQUEST_NULL ((gravel_request)0)
#define GRAVEL_ANY_SOURCE (-1)
#define GRAVEL_ANY_TAG (-2)

enum {
  GRAVEL_SUCCESS = 0,
  GRAVEL_ERR_STATE = 1,      /* not between gravel_init() and gravel_finalize() */
  GRAVEL_ERR_ARGUMENT = 2,   /* a rank, tag, size or pointer that cannot be */
  GRAVEL_ERR_MEMORY = 3,     /* memory not registered, registered twice, or in use */
  GRAVEL_ERR_RANGE = 4,      /* a fragment outside of the announced buffer, or after its last */
  GRAVEL_ERR_REQUEST = 5,    /* no request, or one that was waited for already */
  GRAVEL_ERR_BUFFER = 6,     /* no announced buffer, or one whose FIN was sent already */
  GRAVEL_ERR_INCOMPLETE = 7, /* a FIN before all fragments; the end before all requests */
  GRAVEL_ERR_TRANSFER = 8,   /* data could not be moved */
  GRAVEL_ERR_PEER = 9,       /* the peer is gone: its process, or Gravel there */
  GRAVEL_ERR_SYSTEM = 10     /* the system or the network refuses */
};

/* ---- Start and end. */

/* Collective over `comm`, an intra-communicator of a running MPI, which is used here to exchange
 * addresses and never again. Memory for ledgers is kept for every rank of it (about 3 KiB each). */
int gravel_init(MPI_Comm comm);
/* Not collective. GRAVEL_ERR_INCOMPLETE, and nothing is closed, while requests or announced buffers
 * are not finished; promises need not be kept. */
int gravel_finalize(void);
/* What the last failed call met: what, where, found, needed. Valid until the next failure. */
const char* gravel_error_message(void);

/* ---- Memory. Any memory, as it is: data are only moved from and to registered memory. The
 * fragments used later may be any part of it. */

int gravel_register(void* memory, size_t bytes);
/* By its first byte. GRAVEL_ERR_MEMORY while a request uses it. */
int gravel_unregister(void* memory);

/* ---- Consumer-initiated write. */

/* The consumer announces memory for `bytes` bytes. It may be written at any time from now on until
 * the request is complete, which it is when the producer's FIN has come. */
int gravel_post_recv_buffer_rdma(int producer, void* memory, size_t bytes, int tag,
                                 gravel_request* request);
/* The consumer promises that it will post `count` receive buffers (one or more) of `bytes` bytes to
 * this producer with this tag, before any other with that tag. So the producer can be told of them
 * before they are posted, where a copy of their data costs less than to announce each of them: it
 * need not wait for the consumer then, and only the data travel. A promise is not collective, and
 * ends when all of it has been posted; it need not be kept to the end. GRAVEL_ERR_ARGUMENT if one
 * with this producer and tag has not ended. */
int gravel_promise_recv_buffers(int producer, size_t bytes, int tag, size_t count);
/* The producer waits for (or tests) the next such announcement of the consumer (or
 * GRAVEL_ANY_SOURCE) with this tag (or GRAVEL_ANY_TAG). One that was promised may be found before
 * it is posted. */
int gravel_wait_recv_buffer(int consumer, int tag, gravel_buffer* buffer);
int gravel_test_recv_buffer(int consumer, int tag, gravel_buffer* buffer, int* flag);
/* ... puts a fragment, `offset` bytes into the buffer. Complete when `memory` may be changed. As
 * many as wanted, in any order; together they must fill the buffer. The one that fills it tells the
 * consumer, who may use the data then: no fragment may follow (GRAVEL_ERR_RANGE). With a null
 * `request` none is made, and that of the FIN stands for all fragments. */
int gravel_post_os_put(gravel_buffer buffer, const void* memory, size_t bytes, size_t offset,
                       gravel_request* request);
/* ... and ends the exchange here. Complete when all fragments are over and the consumer has been
 * told, or will be after the data: GRAVEL_REQUEST_NULL if that is so already. With a null `request`
 * the call waits for that. `buffer` is invalid then. */
int gravel_send_fin(gravel_buffer buffer, gravel_request* request);

/* ---- Producer-initiated write: the producer says first that data will come; the consumer then
 * posts the receive buffer as above. */

/* Complete when it has left. With a null `request` the call waits for that. */
int gravel_post_send_request_rdma(int consumer, size_t bytes, int tag, gravel_request* request);
/* `from`, `found_tag` and `bytes` tell which it was; each may be null. */
int gravel_wait_send_request(int producer, int tag, int* from, int* found_tag, size_t* bytes);
int gravel_test_send_request(int producer, int tag, int* from, int* found_tag, size_t* bytes,
                             int* flag);

/* ---- Producer-initiated read: the producer announces memory that is ready. */

/* Must not be changed until the request is complete: when the consumer's FIN has come. */
int gravel_post_send_buffer_rdma(int consumer, const void* memory, size_t bytes, int tag,
                                 gravel_request* request);
int gravel_wait_send_buffer(int producer, int tag, gravel_buffer* buffer);
int gravel_test_send_buffer(int producer, int tag, gravel_buffer* buffer, int* flag);
/* Gets a fragment. Complete when the data are in `memory`. gravel_send_fin() then tells the
 * producer, once all gets of the buffer are over. What was not got is not missed. */
int gravel_post_os_get(gravel_buffer buffer, void* memory, size_t bytes, size_t offset,
                       gravel_request* request);

/* Whose memory it is, its tag and size; each may be null. */
int gravel_get_buffer(gravel_buffer buffer, int* peer, int* tag, size_t* bytes);

/* ---- Completion. A complete request is gone, and the variable is GRAVEL_REQUEST_NULL, also when
 * an error is returned because the operation failed. A null request is complete. */

int gravel_wait(gravel_request* request);
int gravel_test(gravel_request* request, int* flag);
/* Waits for all, also if some fail; returns the first failure's code. */
int gravel_waitall(int count, gravel_request requests[]);

#ifdef __cplusplus
}
#endif

#endif
