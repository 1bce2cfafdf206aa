// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 exchanges 64 messages of 1 KiB with each other rank, one after the other, and prints what
// the kernel says that it has in memory of its own: at first, and after each rank. Bytes, a line
// each.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_resident(void) {
  char line[512];
  long kibibytes = 0;
  FILE* const file = fopen("/proc/self/smaps", "r");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "Anonymous:", 10) == 0) kibibytes += strtol(line + 10, NULL, 10);
  fclose(file);
  printf("%ld\n", kibibytes * 1024);
}

int main(int argc, char** argv) {
  char data[1024] = {0};
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) print_resident();
  for (int other = 1; other < size; ++other) {
    if (rank != 0 && rank != other) continue;
    for (int i = 0; i < 64; ++i) {
      if (rank == 0) MPI_Send(data, sizeof data, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      MPI_Recv(data, sizeof data, MPI_BYTE, rank == 0 ? other : 0, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      if (rank != 0) MPI_Send(data, sizeof data, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) print_resident();
  }
  MPI_Finalize();
  return 0;
}
