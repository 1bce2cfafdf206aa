/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_GRAVEL_CHECK_H
#define TESTS_GRAVEL_CHECK_H

#include <gravel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

/* What is not as it should be ends the job. */
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (condition) break;                                                                          \
    fprintf(stderr, "%s:%d: rank %d: not so: %s (%s)\n", __FILE__, __LINE__, rank, #condition,     \
            gravel_error_message());                                                               \
    exit(1);                                                                                       \
  } while (0)
#define OK(call) EXPECT((call) == GRAVEL_SUCCESS)
/* Refused with this code, and a message that has this in it. */
#define REFUSED(code, text, call)                                                                  \
  do {                                                                                             \
    EXPECT((call) == (code));                                                                      \
    EXPECT(strstr(gravel_error_message(), text) != NULL);                                          \
  } while (0)

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline int end(const char* name) {
  OK(gravel_finalize());
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d ranks agree\n", name, ranks);
  MPI_Finalize();
  return 0;
}

#endif
