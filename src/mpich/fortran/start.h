// SPDX-License-Identifier: BSD-3-Clause
// What the procedures that are written by hand (fortran/by_hand.h) need of this ABI.
#pragma once

#include "mpich/fortran/glue.h"

namespace macadam::mpich::fortran {

// Nothing is left to be done once MPI has started.
inline int started(int code) {
  return code;
}

// A generalized request has the program's own variable as its state.
inline MPI_Aint* kept_place(const MPI_Aint* state) {
  return const_cast<MPI_Aint*>(state);
}

// Whether this process is the root of a call on a communicator.
bool is_here(const Fint* comm, Fint root);

// --- Callbacks that have no state: a Fortran procedure is one of C, except where that gets a file.

using UserFunction = void(void* in, void* inout, Fint* length, Fint* datatype);
using ErrorFunction = void(Fint* handle, Fint* code);
template <class Handle>
using ErrorFunctionInC = void(InC<Handle>* handle, int* code, ...);

inline UserFunction* operation(UserFunction* fortran) {
  return fortran;
}

ErrorFunctionInC<MPI_File>* file_error_handler(ErrorFunction* fortran);
template <class Handle>
ErrorFunctionInC<Handle>* error_handler(ErrorFunction* fortran) {
  if constexpr (is_file<Handle>)
    return file_error_handler(fortran);
  else
    return reinterpret_cast<ErrorFunctionInC<Handle>*>(fortran);
}

// --- Keyvals: the predefined ones are by one larger in Fortran, where their attributes are values.

int c_keyval(Fint keyval);
int standard_keyval(Fint keyval);

// --- The C functions with callbacks.

MPICH_FUNCTION(int, Op_create, (UserFunction * function, int commute, int* op));
MPICH_FUNCTION(int, Comm_create_errhandler, (ErrorFunctionInC<MPI_Comm>*, int*));
MPICH_FUNCTION(int, File_create_errhandler, (ErrorFunctionInC<MPI_File>*, int*));
MPICH_FUNCTION(int, Session_create_errhandler, (ErrorFunctionInC<MPI_Session>*, int*));
MPICH_FUNCTION(int, Win_create_errhandler, (ErrorFunctionInC<MPI_Win>*, int*));
MPICH_FUNCTION(int, Errhandler_create, (ErrorFunctionInC<MPI_Comm>*, int*));

using CopyInC = int(int old, int keyval, void* state, void* in, void* out, int* flag);
using DeleteInC = int(int object, int keyval, void* value, void* state);
MPICH_FUNCTION(int, Keyval_create, (CopyInC*, DeleteInC*, int* keyval, void* state));
MPICH_FUNCTION(int, Comm_create_keyval, (CopyInC*, DeleteInC*, int* keyval, void* state));
MPICH_FUNCTION(int, Type_create_keyval, (CopyInC*, DeleteInC*, int* keyval, void* state));
MPICH_FUNCTION(int, Win_create_keyval, (CopyInC*, DeleteInC*, int* keyval, void* state));

MPICH_FUNCTION(int, Grequest_start,
               (int (*query)(void*, Status*), int (*release)(void*), int (*cancel)(void*, int),
                void* state, int* request));
using ConvertInC = int(void* user, int datatype, int count, void* file, MPI_Offset position,
                       void* state);
MPICH_FUNCTION(int, Register_datarep,
               (const char* name, ConvertInC* read, ConvertInC* write,
                int (*extent)(int datatype, MPI_Aint* extent, void* state), void* state));

} // namespace macadam::mpich::fortran
