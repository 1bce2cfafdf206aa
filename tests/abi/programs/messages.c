/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point communication through the ABI: statuses, wildcards, types, requests, errors. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static int rank, size;

static void ring(void) {
  int token = rank == 0 ? 17 : 0, next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Status status;
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, next, 5, MPI_COMM_WORLD);
  MPI_Recv(&token, 1, MPI_INT, previous, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK(token == 17 && status.MPI_SOURCE == previous && status.MPI_TAG == 5);
  if (rank != 0) MPI_Send_c(&token, 1, MPI_INT, next, 5, MPI_COMM_WORLD);
}

static void wildcards(void) {
  double value = rank * 1.5;
  if (rank != 0) {
    MPI_Send(&value, 1, MPI_DOUBLE, 0, 100 + rank, MPI_COMM_WORLD);
    return;
  }
  for (int i = 1; i < size; ++i) {
    MPI_Status status;
    int count;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(count == 1 && status.MPI_TAG == 100 + status.MPI_SOURCE);
    MPI_Recv(&value, 1, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    CHECK(value == status.MPI_SOURCE * 1.5);
  }
}

/* A column of a matrix, exchanged with requests; large enough for rendezvous. */
static void columns(void) {
  enum { n = 400 };
  float *sent = malloc(n * n * sizeof *sent), *got = calloc(n * n, sizeof *got);
  MPI_Datatype column;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  for (int i = 0; i < n * n; ++i)
    sent[i] = (float)(rank * n + i);
  MPI_Type_vector(n, n / 2, n, MPI_FLOAT, &column);
  MPI_Type_commit(&column);
  int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Irecv(got, 1, column, previous, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(sent, 1, column, next, 3, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
  CHECK(requests[0] == MPI_REQUEST_NULL && statuses[0].MPI_SOURCE == previous);
  for (int i = 0; i < n * n; ++i)
    CHECK(got[i] == (i % n < n / 2 ? (float)(previous * n + i) : 0.0f));
  MPI_Type_free(&column);
  CHECK(column == MPI_DATATYPE_NULL);
  free(sent);
  free(got);
}

static void errors(void) {
  int value = 0, error_class = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int code = MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  MPI_Error_class(code, &error_class);
  CHECK(error_class == MPI_ERR_RANK);
  MPI_Error_string(code, text, &length);
  CHECK(length > 0 && (int)strlen(text) == length);
  MPI_Error_class(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), &error_class);
  CHECK(error_class == MPI_ERR_COUNT);
  MPI_Error_class(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), &error_class);
  CHECK(error_class == MPI_ERR_TYPE);
  MPI_Error_class(MPI_Send(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD), &error_class);
  CHECK(error_class == MPI_ERR_TAG);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void nobody(void) {
  MPI_Status status;
  int count = -1;
  CHECK(MPI_Recv(NULL, 0, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ring();
  wildcards();
  MPI_Barrier(MPI_COMM_WORLD); /* or a probe finds what a rank that is ahead sends next */
  columns();
  errors();
  nobody();
  finish("messages");
  return 0;
}
