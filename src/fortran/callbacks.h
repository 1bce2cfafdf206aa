// SPDX-License-Identifier: BSD-3-Clause
// Fortran procedures as callbacks of C: reductions, error handlers, attributes, generalized
// requests and data representations. Arguments of mpif.h, mpi and mpi_f08 look alike here: all are
// addresses.
#pragma once

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

// --- Attributes: address-sized integers in Fortran.

using CopyFunction = void(Fint* old, Fint* keyval, MPI_Aint* state, MPI_Aint* in, MPI_Aint* out,
                          Fint* flag, Fint* ierror);
using DeleteFunction = void(Fint* object, Fint* keyval, MPI_Aint* value, MPI_Aint* state,
                            Fint* ierror);

// What a keyval made in Fortran calls. Lives as long as the program, since attributes outlive the
// keyval and nothing tells when the last is gone.
struct Keyval {
  CopyFunction* copy;
  DeleteFunction* remove;
  MPI_Aint state;
  // The callbacks of MPI-1, whose attributes are default integers.
  bool default_integers = false;
};
template <class Handle>
int copy_attribute(Handle old, int keyval, void* state, void* in, void* out, int* flag);
template <class Handle>
int delete_attribute(Handle object, int keyval, void* value, void* state);

// What C gets for an attribute set in Fortran: the address of an integer (MPI 5.0, section 19.3.7).
void* box(MPI_Aint value);
void unbox(void* attribute);
// What Fortran gets: the integer that was set there, else the address that was set in C.
MPI_Aint attribute_value(void* attribute);
// ... of a predefined keyval, the value itself.
MPI_Aint attribute_value(int keyval, void* attribute);

// --- Generalized requests and data representations, which have a state of their own.

struct Generalized {
  void (*query)(MPI_Aint* state, Fint* status, Fint* ierror);
  void (*release)(MPI_Aint* state, Fint* ierror);
  void (*cancel)(MPI_Aint* state, const Fint* complete, Fint* ierror);
  MPI_Aint state;
};
int query_generalized(void* state, MPI_Status* status);
int release_generalized(void* state);
int cancel_generalized(void* state, int complete);

template <class Count>
struct Representation {
  using Convert = void(void* user, Fint* datatype, Count* count, void* file, MPI_Offset* position,
                       MPI_Aint* state, Fint* ierror);
  Convert* read;
  Convert* write;
  void (*extent)(Fint* datatype, MPI_Aint* extent, MPI_Aint* state, Fint* ierror);
  MPI_Aint state;
};
template <class Count>
int read_representation(void* user, MPI_Datatype type, Count count, void* file, MPI_Offset position,
                        void* state);
template <class Count>
int write_representation(void* user, MPI_Datatype type, Count count, void* file,
                         MPI_Offset position, void* state);
template <class Count>
int representation_extent(MPI_Datatype type, MPI_Aint* extent, void* state);

} // namespace macadam::fortran
