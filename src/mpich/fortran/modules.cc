// SPDX-License-Identifier: BSD-3-Clause
// What programs call of the modules behind MPICH's `use mpi`, by the names that gfortran and ifort
// give to procedures of modules. All else in those modules is known when a program is compiled.
#include "fortran/arguments.h"

#include <complex>

using namespace macadam::fortran;

extern "C" {

// MPI_SIZEOF, a procedure for each type, and for arrays of it.
#define SIZEOF_IN(procedure, Type)                                                                 \
  void procedure(const void*, Fint* size, Fint* ierror) {                                          \
    *size = sizeof(Type);                                                                          \
    *ierror = MPI_SUCCESS;                                                                         \
  }
#define SIZEOF(type, Type)                                                                         \
  SIZEOF_IN(__mpi_sizeofs_MOD_mpi_sizeof_##type, Type)                                             \
  SIZEOF_IN(__mpi_sizeofs_MOD_mpi_sizeof_##type##v, Type)                                          \
  SIZEOF_IN(mpi_sizeofs_mp_mpi_sizeof_##type##_, Type)                                             \
  SIZEOF_IN(mpi_sizeofs_mp_mpi_sizeof_##type##v_, Type)
SIZEOF(ch, char)
SIZEOF(cx, std::complex<float>)
SIZEOF(d, double)
SIZEOF(i, Fint)
SIZEOF(i1, std::int8_t)
SIZEOF(i2, std::int16_t)
SIZEOF(i8, std::int64_t)
SIZEOF(l, Fint)
SIZEOF(r, float)
#undef SIZEOF
#undef SIZEOF_IN

// Handles of mpi_f08's types, compared.
#define COMPARE_IN(procedure, condition)                                                           \
  Fint procedure(const Fint* a, const Fint* b) {                                                   \
    return logical(condition);                                                                     \
  }
#define COMPARE(handle)                                                                            \
  COMPARE_IN(__mpi_constants_MOD_##handle##eq, *a == *b)                                           \
  COMPARE_IN(__mpi_constants_MOD_##handle##neq, *a != *b)                                          \
  COMPARE_IN(mpi_constants_mp_##handle##eq_, *a == *b)                                             \
  COMPARE_IN(mpi_constants_mp_##handle##neq_, *a != *b)
COMPARE(comm)
COMPARE(datatype)
COMPARE(errhandler)
COMPARE(file)
COMPARE(group)
COMPARE(info)
COMPARE(message)
COMPARE(op)
COMPARE(request)
COMPARE(session)
COMPARE(win)
#undef COMPARE
#undef COMPARE_IN

} // extern "C"
