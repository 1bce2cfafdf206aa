// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fortran/glue.h"

namespace macadam::fortran {

// After a call that starts MPI and returned `code`, which it returns: tells the C library what it
// cannot know, unless it does: sizes of types and the values of .TRUE. and .FALSE. (MPI 5.0,
// section 20.3.1). Not earlier, since some libraries answer only then. Warns on stderr of a library
// that believes other values.
int started(int code);

// Of the state of a generalized request its value is kept, not its place.
inline MPI_Aint* kept_place(const MPI_Aint*) {
  return nullptr;
}

// Whether this process is the root of a call on a communicator.
bool is_here(const Fint* comm, Fint root);

inline int* c_errcodes(Fint* fortran) {
  return fortran == fortran_errcodes_ignore ? MPI_ERRCODES_IGNORE : fortran;
}

} // namespace macadam::fortran
