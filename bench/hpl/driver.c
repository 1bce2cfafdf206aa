/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls High Performance Linpack, whose sources are fetched (run.py), and prints one line:

       driver N NB P Q

   the problem's size, that of a block, rows and columns of the grid of ranks. HPL's other
   parameters are those of its sample input: no look-ahead, one ring, right-looking panels, mixed
   swapping. */
#include "hpl.h"

#include <stdio.h>
#include <stdlib.h>

static int number(const char* text, const char* what, int rank) {
  const int value = atoi(text);
  if (value > 0) return value;
  if (rank == 0) fprintf(stderr, "hpl: %s: needed a number from 1 on, found %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) {
    if (rank == 0) fprintf(stderr, "usage: driver N NB P Q\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int n = number(argv[1], "N", rank), block = number(argv[2], "NB", rank);
  const int rows = number(argv[3], "P", rank), columns = number(argv[4], "Q", rank);
  if (rows * columns != ranks) {
    if (rank == 0)
      fprintf(stderr, "hpl: %d x %d is not the number of ranks, %d\n", rows, columns, ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  HPL_T_grid grid;
  HPL_grid_init(MPI_COMM_WORLD, HPL_ROW_MAJOR, rows, columns, &grid);
  HPL_T_palg algorithm = {.btopo = HPL_1RING,
                          .depth = 0,
                          .nbmin = 4,
                          .nbdiv = 2,
                          .pfact = HPL_RIGHT_LOOKING,
                          .rfact = HPL_RIGHT_LOOKING,
                          .pffun = HPL_pdpanrlT,
                          .rffun = HPL_pdrpanrlT,
                          .upfun = HPL_pdupdateTT,
                          .fswap = HPL_SW_MIX,
                          .fsthr = 64,
                          .equil = 1,
                          .align = 8};
  /* Its report is for people; the numbers are in `result`. */
  HPL_T_test test = {.thrsh = 16, .outfp = fopen("/dev/null", "w")};
  test.epsil = HPL_pdlamch(MPI_COMM_WORLD, HPL_MACH_EPS);
  HPL_RuntimeData result = {0};
  HPL_pdtest(&test, &grid, &algorithm, n, block, &result);
  if (rank == 0)
    printf("hpl n=%d block=%d ranks=%d seconds=%.6f gflops=%.6f verified=%s\n", n, block, ranks,
           result.time, result.Gflops,
           test.kpass == 1 && test.kfail + test.kskip == 0 ? "yes" : "no");
  fclose(test.outfp);
  HPL_grid_exit(&grid);
  MPI_Finalize();
  return test.kpass != 1;
}
