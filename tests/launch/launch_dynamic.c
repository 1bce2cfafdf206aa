// SPDX-License-Identifier: BSD-3-Clause
// Jobs that start others or meet until they are killed: launch_dynamic spawn, accept, or connect
// PORT. Each prints a line when it has done so once. Errors are fatal.
// launch_dynamic try PROGRAM [ARGUMENT] spawns two of PROGRAM, says what has become of it, and then
// spawns two of its own. What is spawned with ARGUMENT "large" takes 1 GiB before it calls MPI.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void talk(MPI_Comm inter) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Comm_disconnect(&inter);
}

static void say(int round, const char* what) {
  if (round > 0) return;
  printf("%s\n", what);
  fflush(stdout);
}

static void try(char* program, char** arguments, int rank) {
  int codes[2] = {-1, -1}, code, error = MPI_SUCCESS;
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  code = MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
  MPI_Error_class(code, &error);
  printf("rank %d: class %d, codes %d and %d\n", rank, error, codes[0], codes[1]);
  fflush(stdout);
  if (error == MPI_SUCCESS) talk(inter);
}

int main(int argc, char** argv) {
  const size_t large = (size_t)1 << 30;
  if (argc == 2 && strcmp(argv[1], "large") == 0) {
    char* const memory = malloc(large);
    memset(memory, 1, large);
    puts(memory[large / 2] == 1 ? "there is memory" : "");
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm inter;
  MPI_Comm_get_parent(&inter);
  if (inter != MPI_COMM_NULL) {
    talk(inter);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(argv[1], "try") == 0) {
    try(argv[2], argv + 3, rank);
    try(argv[0], MPI_ARGV_NULL, rank);
    MPI_Finalize();
    return 0;
  }
  char port[MPI_MAX_PORT_NAME] = "";
  const int accepts = strcmp(argv[1], "accept") == 0;
  if (accepts && rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    say(0, port);
  }
  for (int round = 0;; ++round) {
    if (accepts)
      MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    else if (argc > 2)
      MPI_Comm_connect(argv[2], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    else
      MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                     MPI_ERRCODES_IGNORE);
    talk(inter);
    if (rank == 0) say(round, "once");
  }
}
