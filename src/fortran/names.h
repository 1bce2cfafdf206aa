// SPDX-License-Identifier: BSD-3-Clause
// The names of the procedures.
//
// The sources with procedures are compiled twice: as MPI_, which call the C functions MPI_, and
// with MACADAM_PROFILED as PMPI_, which call PMPI_. So a tool in C sees a call from Fortran once,
// and so does a tool in Fortran.
#pragma once

#include "fortran/mangling.h"

#ifdef MACADAM_PROFILED
#define CALL(Name) PMPI_##Name
#define ENTRY(lower, UPPER) MACADAM_NAME(pmpi_##lower, PMPI_##UPPER)
#define F08(lower, UPPER) MACADAM_NAME(pmpi_##lower##_f08, PMPI_##UPPER##_F08)
#define F08TS(lower) pmpi_##lower##_f08ts
#define CPTR(lower, UPPER) MACADAM_NAME(pmpi_##lower##_cptr, PMPI_##UPPER##_CPTR)
#else
#define CALL(Name) MPI_##Name
#define ENTRY(lower, UPPER) MACADAM_NAME(mpi_##lower, MPI_##UPPER)
#define F08(lower, UPPER) MACADAM_NAME(mpi_##lower##_f08, MPI_##UPPER##_F08)
#define F08TS(lower) mpi_##lower##_f08ts
#define CPTR(lower, UPPER) MACADAM_NAME(mpi_##lower##_cptr, MPI_##UPPER##_CPTR)
#endif

#define MACADAM_QUOTED(name) #name
#define MACADAM_STRING(name) MACADAM_QUOTED(name)
// A second name of a procedure: the one of mpi_f08, and that with TYPE(C_PTR) in module mpi.
#define MACADAM_ALSO(name, other) [[gnu::alias(MACADAM_STRING(name))]] decltype(name) other;
#define ALSO_F08(lower, UPPER) MACADAM_ALSO(ENTRY(lower, UPPER), F08(lower, UPPER))
#define ALSO_CPTR(lower, UPPER) MACADAM_ALSO(ENTRY(lower, UPPER), CPTR(lower, UPPER))
