// SPDX-License-Identifier: BSD-3-Clause
// Ranks in a ring that no network connects: launch_unreached ACTION. An error ends it, except in
// `pending`: there each rank looks at its statuses, and ends with 3 if they are right.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, out, in;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "launch_unreached: %s is wrong\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int next(void) {
  return (rank + 1) % size;
}
static int previous(void) {
  return (rank + size - 1) % size;
}

static void start(MPI_Request* requests) {
  MPI_Irecv(&in, 1, MPI_INT, previous(), 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, next(), 0, MPI_COMM_WORLD, &requests[1]);
}

static int error_class(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

// The send has failed; the receive is there still, and can be cancelled.
static void pending(int tests) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  int code = MPI_SUCCESS, flag = 0;
  start(requests);
  if (tests) {
    while (code == MPI_SUCCESS && !flag)
      code = MPI_Testall(2, requests, &flag, statuses);
  } else {
    code = MPI_Waitall(2, requests, statuses);
  }
  require(error_class(code) == MPI_ERR_IN_STATUS, "the error of the call");
  require(error_class(statuses[0].MPI_ERROR) == MPI_ERR_PENDING, "the status of the receive");
  require(error_class(statuses[1].MPI_ERROR) == MPI_ERR_PROC_ABORTED, "the status of the send");
  require(requests[0] != MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "a request");
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], &statuses[0]);
  MPI_Test_cancelled(&statuses[0], &flag);
  require(flag, "the cancelled receive");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* const action = argv[1];
  if (strcmp(action, "send") == 0) {
    if (rank == 0) MPI_Send(&out, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank != 0) MPI_Recv(&in, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(action, "sendrecv") == 0) {
    MPI_Sendrecv(&out, 1, MPI_INT, next(), 0, &in, 1, MPI_INT, previous(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  } else if (strcmp(action, "waitall") == 0) {
    MPI_Request requests[2];
    start(requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else if (strcmp(action, "barrier") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(action, "alltoall") == 0) {
    int* const words = calloc((size_t)size * 2, sizeof *words);
    MPI_Alltoall(words, 1, MPI_INT, words + size, 1, MPI_INT, MPI_COMM_WORLD);
    free(words);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    pending(strcmp(action, "pending-tests") == 0);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return 0;
}
