// SPDX-License-Identifier: BSD-3-Clause
// Fortran procedures as callbacks of C that have no state: reductions and error handlers. Arguments
// of mpif.h, mpi and mpi_f08 look alike here: all are addresses.
#pragma once

#include "fortran/callbacks.h"
#include "fortran/glue.h"

namespace macadam::fortran {

using UserFunction = void(void* in, void* inout, Fint* length, Fint* datatype);
using UserFunctionLarge = void(void* in, void* inout, MPI_Count* length, Fint* datatype);
using ErrorFunction = void(Fint* handle, Fint* code);

// The C function that calls a Fortran one. C tells these callbacks nothing by which one function
// could serve for all, so each Fortran function gets one of its own, for good: a program has but
// few different ones. Null, with an explanation on stderr, if there are none left.
MPI_User_function* operation(UserFunction* fortran);
MPI_User_function_c* operation(UserFunctionLarge* fortran);
template <class Handle>
auto error_handler(ErrorFunction* fortran) -> void (*)(Handle*, int*, ...);

} // namespace macadam::fortran
