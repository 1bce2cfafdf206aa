// SPDX-License-Identifier: BSD-3-Clause
// Fortran procedures as callbacks of C that have a state: attributes, generalized requests and data
// representations. Alike in every ABI of MPI, but for the types of C's handles and statuses.
#pragma once

#include "fortran/arguments.h"

#include <cstdint>
#include <memory>
#include <set>

namespace macadam::fortran {

// C's handle as Fortran has it.
template <class Handle>
Fint number(Handle handle);

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

// What C gets for an attribute set in Fortran: the address of an integer (MPI 5.0, section 19.3.7).
void* box(MPI_Aint value);
void unbox(void* attribute);
// A call that gets attributes: what it finds stays a box until its end, although another thread may
// remove the attribute meanwhile.
class Getting {
 public:
  Getting();
  Getting(const Getting&) = delete;
  Getting& operator=(const Getting&) = delete;
  ~Getting();

 private:
  std::multiset<std::uint64_t>::iterator began_;
};
// What Fortran gets: the integer that was set there, else the address that was set in C.
MPI_Aint attribute_value(void* attribute);
// ... of a predefined keyval, by its number in the standard ABI: the value itself.
MPI_Aint attribute_value(int keyval, void* attribute);

template <class Handle>
int copy_attribute(Handle old, int keyval, void* state, void* in, void* out, int* flag) {
  Keyval& callbacks = *static_cast<Keyval*>(state);
  Fint object = number(old), kept = logical(0), ierror = MPI_SUCCESS;
  MPI_Aint from = attribute_value(in), to = 0;
  callbacks.copy(&object, &keyval, &callbacks.state, &from, &to, &kept, &ierror);
  if (callbacks.default_integers) to = static_cast<Fint>(to);
  *flag = truth(kept);
  if (ierror == MPI_SUCCESS && truth(kept)) *static_cast<void**>(out) = box(to);
  return ierror;
}

template <class Handle>
int delete_attribute(Handle object, int keyval, void* attribute, void* state) {
  Keyval& callbacks = *static_cast<Keyval*>(state);
  Fint owner = number(object), ierror = MPI_SUCCESS;
  MPI_Aint value = attribute_value(attribute);
  callbacks.remove(&owner, &keyval, &value, &callbacks.state, &ierror);
  if (ierror == MPI_SUCCESS) unbox(attribute);
  return ierror;
}

// --- Generalized requests and data representations, which have a state of their own.

struct Generalized {
  void (*query)(MPI_Aint* state, Fint* status, Fint* ierror);
  void (*release)(MPI_Aint* state, Fint* ierror);
  void (*cancel)(MPI_Aint* state, const Fint* complete, Fint* ierror);
  MPI_Aint value;
  MPI_Aint* place; // of the program's variable, or null
  MPI_Aint* state() { return place == nullptr ? &value : place; }
};

template <class Status>
int query_generalized(void* state, Status* status) {
  auto& callbacks = *static_cast<Generalized*>(state);
  Fint ierror = MPI_SUCCESS;
  callbacks.query(callbacks.state(), reinterpret_cast<Fint*>(status), &ierror);
  return ierror;
}

inline int release_generalized(void* state) {
  const std::unique_ptr<Generalized> callbacks(static_cast<Generalized*>(state));
  Fint ierror = MPI_SUCCESS;
  callbacks->release(callbacks->state(), &ierror);
  return ierror;
}

inline int cancel_generalized(void* state, int complete) {
  auto& callbacks = *static_cast<Generalized*>(state);
  Fint ierror = MPI_SUCCESS;
  const Fint is_complete = logical(complete);
  callbacks.cancel(callbacks.state(), &is_complete, &ierror);
  return ierror;
}

template <class Count>
struct Representation {
  using Convert = void(void* user, Fint* datatype, Count* count, void* file, MPI_Offset* position,
                       MPI_Aint* state, Fint* ierror);
  Convert* read;
  Convert* write;
  void (*extent)(Fint* datatype, MPI_Aint* extent, MPI_Aint* state, Fint* ierror);
  MPI_Aint state;
};

template <class Datatype, class Count>
int convert(typename Representation<Count>::Convert* function, MPI_Aint* state, void* user,
            Datatype type, Count count, void* file, MPI_Offset position) {
  Fint datatype = number(type), ierror = MPI_SUCCESS;
  function(user, &datatype, &count, file, &position, state, &ierror);
  return ierror;
}

template <class Datatype, class Count>
int read_representation(void* user, Datatype type, Count count, void* file, MPI_Offset position,
                        void* state) {
  auto& callbacks = *static_cast<Representation<Count>*>(state);
  return convert<Datatype, Count>(callbacks.read, &callbacks.state, user, type, count, file,
                                  position);
}

template <class Datatype, class Count>
int write_representation(void* user, Datatype type, Count count, void* file, MPI_Offset position,
                         void* state) {
  auto& callbacks = *static_cast<Representation<Count>*>(state);
  return convert<Datatype, Count>(callbacks.write, &callbacks.state, user, type, count, file,
                                  position);
}

template <class Datatype, class Count>
int representation_extent(Datatype type, MPI_Aint* extent, void* state) {
  auto& callbacks = *static_cast<Representation<Count>*>(state);
  Fint datatype = number(type), ierror = MPI_SUCCESS;
  callbacks.extent(&datatype, extent, &callbacks.state, &ierror);
  return ierror;
}

} // namespace macadam::fortran
