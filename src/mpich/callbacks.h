// SPDX-License-Identifier: BSD-3-Clause
// Functions of a program in MPICH's ABI as callbacks of the standard one: reductions, error
// handlers, attributes, generalized requests and data representations.
#pragma once

#include "mpich/glue.h"

namespace macadam::mpich {

// --- Reductions and error handlers: the standard's function that calls the program's
// (base::Slots). Null, with an explanation on stderr, if there are none left.

template <class Count>
using UserFunction = void(void* in, void* inout, Count* length, int* datatype);
template <class Handle>
using ErrorFunction = void(typename Of<Handle>::Mpich* object, int* code, ...);

template <class Count>
auto operation(UserFunction<Count>* function) -> void (*)(void*, void*, Count*, MPI_Datatype*);
template <class Handle>
auto error_handler(ErrorFunction<Handle>* function) -> void (*)(Handle*, int*, ...);

// --- Attributes.

using CopyFunction = int(int old, int keyval, void* state, void* in, void* out, int* flag);
using DeleteFunction = int(int object, int keyval, void* value, void* state);

// What a keyval calls; null for MPI_NULL_COPY_FN and MPI_NULL_DELETE_FN. Lives as long as the
// program, since attributes outlive the keyval and nothing tells when the last is gone.
struct AttributeFunctions {
  CopyFunction* copy;
  DeleteFunction* remove;
  void* state;
};
template <class Handle>
int copy_attribute(Handle old, int keyval, void* state, void* in, void* out, int* flag);
template <class Handle>
int delete_attribute(Handle object, int keyval, void* value, void* state);

// --- Generalized requests and data representations, which have a state of their own.

struct Generalized {
  int (*query)(void* state, Status* status);
  int (*release)(void* state);
  int (*cancel)(void* state, int complete);
  void* state;
};
int query_generalized(void* state, MPI_Status* status);
int release_generalized(void* state);
int cancel_generalized(void* state, int complete);

template <class Count>
struct Representation {
  using Convert = int(void* user, int datatype, Count count, void* file, MPI_Offset position,
                      void* state);
  Convert* read;
  Convert* write;
  int (*extent)(int datatype, MPI_Aint* extent, void* state);
  void* state;
};
template <class Count>
int read_representation(void* user, MPI_Datatype type, Count count, void* file, MPI_Offset position,
                        void* state);
template <class Count>
int write_representation(void* user, MPI_Datatype type, Count count, void* file,
                         MPI_Offset position, void* state);
template <class Count>
int representation_extent(MPI_Datatype type, MPI_Aint* extent, void* state);

} // namespace macadam::mpich
