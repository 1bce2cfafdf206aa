// SPDX-License-Identifier: BSD-3-Clause
// The predefined callbacks, which programs pass by name: attributes are copied or left out, and
// deleting them needs nothing.
#include "fortran/predefined.h"
#include "fortran/arguments.h"
#include "fortran/names.h"

using namespace macadam::fortran;

extern "C" {

#define PROFILED(lower, UPPER)                                                                     \
  MACADAM_ALSO(ENTRY(lower, UPPER), MACADAM_NAME(pmpi_##lower, PMPI_##UPPER))

#define NULL_COPY(lower, UPPER)                                                                    \
  void ENTRY(lower, UPPER)(Fint*, Fint*, MPI_Aint*, MPI_Aint*, MPI_Aint*, Fint * flag,             \
                           Fint * ierror) {                                                        \
    *flag = logical(0);                                                                            \
    *ierror = MPI_SUCCESS;                                                                         \
  }                                                                                                \
  PROFILED(lower, UPPER)
#define DUP(lower, UPPER, Integer)                                                                 \
  void ENTRY(lower, UPPER)(Fint*, Fint*, Integer*, Integer * in, Integer * out, Fint * flag,       \
                           Fint * ierror) {                                                        \
    *out = *in;                                                                                    \
    *flag = logical(1);                                                                            \
    *ierror = MPI_SUCCESS;                                                                         \
  }                                                                                                \
  PROFILED(lower, UPPER)
#define NULL_DELETE(lower, UPPER)                                                                  \
  void ENTRY(lower, UPPER)(Fint*, Fint*, MPI_Aint*, MPI_Aint*, Fint * ierror) {                    \
    *ierror = MPI_SUCCESS;                                                                         \
  }                                                                                                \
  PROFILED(lower, UPPER)

NULL_COPY(null_copy_fn, NULL_COPY_FN)
NULL_COPY(comm_null_copy_fn, COMM_NULL_COPY_FN)
NULL_COPY(type_null_copy_fn, TYPE_NULL_COPY_FN)
NULL_COPY(win_null_copy_fn, WIN_NULL_COPY_FN)
DUP(dup_fn, DUP_FN, Fint) // of MPI-1, with default integers
DUP(comm_dup_fn, COMM_DUP_FN, MPI_Aint)
DUP(type_dup_fn, TYPE_DUP_FN, MPI_Aint)
DUP(win_dup_fn, WIN_DUP_FN, MPI_Aint)
NULL_DELETE(null_delete_fn, NULL_DELETE_FN)
NULL_DELETE(comm_null_delete_fn, COMM_NULL_DELETE_FN)
NULL_DELETE(type_null_delete_fn, TYPE_NULL_DELETE_FN)
NULL_DELETE(win_null_delete_fn, WIN_NULL_DELETE_FN)

// Only compared with, never called.
void ENTRY(conversion_fn_null, CONVERSION_FN_NULL)() {}
PROFILED(conversion_fn_null, CONVERSION_FN_NULL)
void ENTRY(conversion_fn_null_c, CONVERSION_FN_NULL_C)() {}
PROFILED(conversion_fn_null_c, CONVERSION_FN_NULL_C)

} // extern "C"
