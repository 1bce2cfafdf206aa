// SPDX-License-Identifier: BSD-3-Clause
// The predefined callbacks of Fortran. In C the same names are macros, which would take the place
// of the procedures with a compiler that writes names in capitals.
#pragma once

#include "fortran/mangling.h"

#include <mpi.h>

#undef MPI_NULL_COPY_FN
#undef MPI_DUP_FN
#undef MPI_NULL_DELETE_FN
#undef MPI_COMM_NULL_COPY_FN
#undef MPI_COMM_DUP_FN
#undef MPI_COMM_NULL_DELETE_FN
#undef MPI_TYPE_NULL_COPY_FN
#undef MPI_TYPE_DUP_FN
#undef MPI_TYPE_NULL_DELETE_FN
#undef MPI_WIN_NULL_COPY_FN
#undef MPI_WIN_DUP_FN
#undef MPI_WIN_NULL_DELETE_FN
#undef MPI_CONVERSION_FN_NULL
#undef MPI_CONVERSION_FN_NULL_C

extern "C" {
// Only compared with, never called.
void MACADAM_NAME(mpi_conversion_fn_null, MPI_CONVERSION_FN_NULL)();
void MACADAM_NAME(mpi_conversion_fn_null_c, MPI_CONVERSION_FN_NULL_C)();
}
