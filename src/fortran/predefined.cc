// SPDX-License-Identifier: BSD-3-Clause
// The predefined callbacks, which programs pass by name: attributes are copied or left out, and
// deleting them needs nothing.
#include "fortran/predefined.h"
#include "fortran/arguments.h"

using namespace macadam::fortran;

extern "C" {

#define NULL_COPY(lower, UPPER)                                                                    \
  void MACADAM_NAME(lower, UPPER)(Fint*, Fint*, MPI_Aint*, MPI_Aint*, MPI_Aint*, Fint * flag,      \
                                  Fint * ierror) {                                                 \
    *flag = logical(0);                                                                            \
    *ierror = MPI_SUCCESS;                                                                         \
  }
#define DUP(lower, UPPER, Integer)                                                                 \
  void MACADAM_NAME(lower, UPPER)(Fint*, Fint*, Integer*, Integer * in, Integer * out,             \
                                  Fint * flag, Fint * ierror) {                                    \
    *out = *in;                                                                                    \
    *flag = logical(1);                                                                            \
    *ierror = MPI_SUCCESS;                                                                         \
  }
#define NULL_DELETE(lower, UPPER)                                                                  \
  void MACADAM_NAME(lower, UPPER)(Fint*, Fint*, MPI_Aint*, MPI_Aint*, Fint * ierror) {             \
    *ierror = MPI_SUCCESS;                                                                         \
  }

NULL_COPY(mpi_null_copy_fn, MPI_NULL_COPY_FN)
NULL_COPY(mpi_comm_null_copy_fn, MPI_COMM_NULL_COPY_FN)
NULL_COPY(mpi_type_null_copy_fn, MPI_TYPE_NULL_COPY_FN)
NULL_COPY(mpi_win_null_copy_fn, MPI_WIN_NULL_COPY_FN)
DUP(mpi_dup_fn, MPI_DUP_FN, Fint) // of MPI-1, with default integers
DUP(mpi_comm_dup_fn, MPI_COMM_DUP_FN, MPI_Aint)
DUP(mpi_type_dup_fn, MPI_TYPE_DUP_FN, MPI_Aint)
DUP(mpi_win_dup_fn, MPI_WIN_DUP_FN, MPI_Aint)
NULL_DELETE(mpi_null_delete_fn, MPI_NULL_DELETE_FN)
NULL_DELETE(mpi_comm_null_delete_fn, MPI_COMM_NULL_DELETE_FN)
NULL_DELETE(mpi_type_null_delete_fn, MPI_TYPE_NULL_DELETE_FN)
NULL_DELETE(mpi_win_null_delete_fn, MPI_WIN_NULL_DELETE_FN)

// Only compared with, never called.
void MACADAM_NAME(mpi_conversion_fn_null, MPI_CONVERSION_FN_NULL)() {}
void MACADAM_NAME(mpi_conversion_fn_null_c, MPI_CONVERSION_FN_NULL_C)() {}

} // extern "C"
