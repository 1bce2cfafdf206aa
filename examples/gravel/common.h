/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the examples of Gravel share: an error ends the job with its message. */
#ifndef EXAMPLES_GRAVEL_COMMON_H
#define EXAMPLES_GRAVEL_COMMON_H

#include <gravel.h>
#include <stdio.h>

static inline void check(int code) {
  if (code == GRAVEL_SUCCESS) return;
  fprintf(stderr, "%s\n", gravel_error_message());
  MPI_Abort(MPI_COMM_WORLD, code);
}

#endif
