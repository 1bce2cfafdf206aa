// SPDX-License-Identifier: BSD-3-Clause
// The names of the procedures, which gfortran and ifort know by one underscore, and how the C
// functions are declared that they call. As in src/fortran/names.h the sources with procedures are
// compiled twice: so a tool in C sees a call from Fortran once, and so does a tool in Fortran.
#pragma once

#ifdef MACADAM_PROFILED
#define CALL(Name) mpich_profiled_##Name
#define ENTRY(lower, UPPER) pmpi_##lower##_
#else
#define CALL(Name) mpich_##Name
#define ENTRY(lower, UPPER) mpi_##lower##_
#endif

// There are no other names: those of mpi_f08 are different for each compiler in MPICH.
#define ALSO_F08(lower, UPPER)

// mpi.h has functions of the same names with the types of the standard ABI; so ours get their names
// from the assembler.
#define MPICH_FUNCTION(result, name, parameters)                                                   \
  extern "C" result mpich_##name parameters __asm__("MPI_" #name);                                 \
  extern "C" result mpich_profiled_##name parameters __asm__("PMPI_" #name)
