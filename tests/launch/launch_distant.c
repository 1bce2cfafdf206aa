// SPDX-License-Identifier: BSD-3-Clause
// Two jobs that meet and do a little of everything: launch_distant COMM ROUNDS [PORT]. Without a
// port the job opens one and prints it. COMM is `world`, or `self`: then rank 0 meets the other job
// alone. With 0 rounds it meets once, says so, and waits for a message that does not come; with -1
// it stays for a moment if it cannot meet; with -2 it waits as with 0, and an error ends it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { long_bytes = 1 << 20 };

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "launch_distant: %s is wrong\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Each adds its rank to a word of everybody's.
static void use_window(MPI_Comm comm) {
  int rank, size, *word;
  MPI_Win window;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, comm, &word, &window);
  *word = 0;
  MPI_Win_fence(0, window);
  for (int target = 0; target < size; ++target)
    MPI_Accumulate(&rank, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  require(*word == size * (size - 1) / 2, "what was accumulated");
  MPI_Win_free(&window);
}

static void talk(MPI_Comm inter, int accepts) {
  MPI_Comm all;
  MPI_Intercomm_merge(inter, !accepts, &all);
  int rank, size, sum = 0;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  require(sum == size * (size - 1) / 2, "the sum of all ranks");
  int* const out = malloc(long_bytes);
  int* const in = malloc(long_bytes);
  const int count = long_bytes / (int)sizeof *out;
  for (int i = 0; i < count; ++i)
    out[i] = rank + i;
  const int before = (rank + size - 1) % size;
  MPI_Sendrecv(out, count, MPI_INT, (rank + 1) % size, 0, in, count, MPI_INT, before, 0, all,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < count; ++i)
    require(in[i] == before + i, "a long message");
  free(out);
  free(in);
  use_window(all);
  MPI_Comm_free(&all);
}

// What the end of the other side does to a receive.
static void wait_in_vain(MPI_Comm inter) {
  int word, error, length;
  char text[MPI_MAX_ERROR_STRING];
  puts("met");
  fflush(stdout);
  const int code = MPI_Recv(&word, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
  MPI_Error_class(code, &error);
  MPI_Error_string(code, text, &length);
  printf("%s\n", error == MPI_ERR_PROC_ABORTED ? "the other side has ended" : text);
  fflush(stdout);
  MPI_Comm_free(&inter);
}

// Not before the other side knows why, too.
static void fail_later(int code) {
  int length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s\n", text);
  sleep(2);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int alone = strcmp(argv[1], "self") == 0, rounds = atoi(argv[2]), accepts = argc < 4;
  const MPI_Comm comm = alone ? MPI_COMM_SELF : MPI_COMM_WORLD;
  char port[MPI_MAX_PORT_NAME] = "";
  if (!accepts) strcpy(port, argv[3]);
  if (accepts && rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    puts(port);
    fflush(stdout);
  }
  for (int round = 0; round < (rounds > 0 ? rounds : 1); ++round) {
    if (!alone || rank == 0) {
      MPI_Comm inter;
      if (rounds == -1) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      const int code = accepts ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &inter)
                               : MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &inter);
      if (code != MPI_SUCCESS) fail_later(code);
      if (rounds == 0) MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
      if (rounds == 0 || rounds == -2) {
        wait_in_vain(inter);
        continue;
      }
      talk(inter, accepts);
      MPI_Comm_disconnect(&inter);
    }
    use_window(MPI_COMM_WORLD); // some of which may have opened a network meanwhile
  }
  puts("done");
  MPI_Finalize();
  return 0;
}
