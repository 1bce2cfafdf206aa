// SPDX-License-Identifier: BSD-3-Clause
// The names that a Fortran compiler gives to external procedures and common blocks. The build
// option MACADAM_FORTRAN_MANGLING says which: `underscore` (mpi_send_), `lower` (mpi_send) or
// `upper` (MPI_SEND).
#pragma once

#if defined(MACADAM_FORTRAN_UPPER)
#define MACADAM_NAME(lower, UPPER) UPPER
#elif defined(MACADAM_FORTRAN_LOWER)
#define MACADAM_NAME(lower, UPPER) lower
#else
#define MACADAM_NAME(lower, UPPER) lower##_
#endif
