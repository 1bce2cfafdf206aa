// SPDX-License-Identifier: BSD-3-Clause
// Variables that Fortran programs pass for their address alone, such as MPI_IN_PLACE: common
// blocks, which mpif.h and the modules declare too. The linker makes one of them all, so an address
// tells.
#pragma once

#include "fortran/mangling.h"

extern "C" {
extern int MACADAM_NAME(mpi_fortran_bottom, MPI_FORTRAN_BOTTOM)[1];
extern int MACADAM_NAME(mpi_fortran_in_place, MPI_FORTRAN_IN_PLACE)[1];
extern int MACADAM_NAME(mpi_fortran_buffer_automatic, MPI_FORTRAN_BUFFER_AUTOMATIC)[1];
extern int MACADAM_NAME(mpi_fortran_status_ignore, MPI_FORTRAN_STATUS_IGNORE)[8];
extern int MACADAM_NAME(mpi_fortran_statuses_ignore, MPI_FORTRAN_STATUSES_IGNORE)[8];
extern int MACADAM_NAME(mpi_fortran_errcodes_ignore, MPI_FORTRAN_ERRCODES_IGNORE)[1];
extern int MACADAM_NAME(mpi_fortran_unweighted, MPI_FORTRAN_UNWEIGHTED)[1];
extern int MACADAM_NAME(mpi_fortran_weights_empty, MPI_FORTRAN_WEIGHTS_EMPTY)[1];
extern char MACADAM_NAME(mpi_fortran_argv_null, MPI_FORTRAN_ARGV_NULL)[1];
extern char MACADAM_NAME(mpi_fortran_argvs_null, MPI_FORTRAN_ARGVS_NULL)[1];
}

#define fortran_bottom MACADAM_NAME(mpi_fortran_bottom, MPI_FORTRAN_BOTTOM)
#define fortran_in_place MACADAM_NAME(mpi_fortran_in_place, MPI_FORTRAN_IN_PLACE)
#define fortran_buffer_automatic                                                                   \
  MACADAM_NAME(mpi_fortran_buffer_automatic, MPI_FORTRAN_BUFFER_AUTOMATIC)
#define fortran_status_ignore MACADAM_NAME(mpi_fortran_status_ignore, MPI_FORTRAN_STATUS_IGNORE)
#define fortran_statuses_ignore                                                                    \
  MACADAM_NAME(mpi_fortran_statuses_ignore, MPI_FORTRAN_STATUSES_IGNORE)
#define fortran_errcodes_ignore                                                                    \
  MACADAM_NAME(mpi_fortran_errcodes_ignore, MPI_FORTRAN_ERRCODES_IGNORE)
#define fortran_unweighted MACADAM_NAME(mpi_fortran_unweighted, MPI_FORTRAN_UNWEIGHTED)
#define fortran_weights_empty MACADAM_NAME(mpi_fortran_weights_empty, MPI_FORTRAN_WEIGHTS_EMPTY)
#define fortran_argv_null MACADAM_NAME(mpi_fortran_argv_null, MPI_FORTRAN_ARGV_NULL)
#define fortran_argvs_null MACADAM_NAME(mpi_fortran_argvs_null, MPI_FORTRAN_ARGVS_NULL)
