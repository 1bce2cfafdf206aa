/* SPDX-License-Identifier: BSD-3-Clause
 * What test_trace.py traces. Usage: launch_trace ACTION
 *   protocols   messages from rank 0 to rank 1 by EAGER, SEND_RNDV and RECV_RNDV
 *   many        300,000 messages of 8 bytes from rank 0 to rank 1
 *   threads     two threads of each rank exchange messages
 *   paced       for a second, a message to and fro every 25 ms
 */
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { large = 1 << 20, window = 10000, windows = 30, rounds = 200 };

static int rank;

static void receive(void* data, int bytes, int tag) {
  MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(const void* data, int bytes, int tag) {
  MPI_Send(data, bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD);
}

static void protocols(void) {
  char* const data = calloc(large, 1);
  if (rank == 0) {
    MPI_Request request;
    send(data, 8, 1);
    MPI_Isend(data, large, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    receive(NULL, 0, 3); /* the announcement has come before it */
    send(data, large, 4);
    for (int i = 0; i < 10; ++i)
      send(data, 8, 5);
  } else if (rank == 1) {
    MPI_Request request;
    receive(data, 8, 1);
    MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* its RTS has come */
    receive(data, large, 2);
    MPI_Irecv(data, large, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &request);
    send(NULL, 0, 3);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 10; ++i)
      receive(data, 8, 5);
  }
  free(data);
}

static void many(void) {
  static double value[window];
  for (int i = 0; i < windows; ++i) {
    for (int k = 0; k < window; ++k)
      if (rank == 0)
        send(&value[k], 8, 1);
      else
        receive(&value[k], 8, 1);
    if (rank == 0)
      receive(NULL, 0, 2);
    else
      send(NULL, 0, 2);
  }
}

static void* exchange(void* tag) {
  int value = 0;
  for (int i = 0; i < rounds; ++i)
    MPI_Sendrecv(&i, 1, MPI_INT, 1 - rank, *(int*)tag, &value, 1, MPI_INT, 1 - rank, *(int*)tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

static void threads(void) {
  int tags[] = {1, 2};
  pthread_t thread[2];
  for (int i = 0; i < 2; ++i)
    pthread_create(&thread[i], NULL, exchange, &tags[i]);
  for (int i = 0; i < 2; ++i)
    pthread_join(thread[i], NULL);
}

static void paced(void) {
  for (int i = 0; i < 40; ++i) {
    if (rank == 0) {
      usleep(25000);
      send(NULL, 0, 1);
      receive(NULL, 0, 1);
    } else {
      receive(NULL, 0, 1);
      send(NULL, 0, 1);
    }
  }
}

int main(int argc, char** argv) {
  const char* const action = argc > 1 ? argv[1] : "";
  int level;
  MPI_Init_thread(&argc, &argv,
                  strcmp(action, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(action, "protocols") == 0)
    protocols();
  else if (strcmp(action, "many") == 0)
    many();
  else if (strcmp(action, "threads") == 0)
    threads();
  else if (strcmp(action, "paced") == 0)
    paced();
  MPI_Finalize();
  return 0;
}
