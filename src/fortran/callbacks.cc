// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/callbacks.h"

#include "base/slots.h"

#include <mutex>
#include <unordered_set>

namespace macadam::fortran {

namespace {

using base::Slots;

constexpr const char* in_fortran =
    "MPI in Fortran (a procedure inside another counts each time that the outer one is called)";

template <class FortranFunction, class Length>
struct Operation {
  using User = FortranFunction;
  static constexpr const char* where = in_fortran;
  static constexpr const char* name = "procedures for MPI_Op_create";
  template <std::size_t i>
  static void call(void* in, void* inout, Length* length, MPI_Datatype* datatype) {
    Fint type = number(*datatype);
    Slots<Operation>::functions[i](in, inout, length, &type);
  }
};

template <class Handle>
struct OnError {
  using User = ErrorFunction;
  static constexpr const char* where = in_fortran;
  static constexpr const char* name = "error handlers";
  template <std::size_t i>
  static void call(Handle* object, int* code, ...) {
    Fint fortran = number(*object);
    Slots<OnError>::functions[i](&fortran, code);
  }
};

// The addresses handed out by box().
struct Boxes {
  std::mutex mutex;
  std::unordered_set<void*> all;
};
Boxes boxes;

bool is_box(void* attribute) {
  const std::lock_guard lock(boxes.mutex);
  return boxes.all.contains(attribute);
}

} // namespace

MPI_User_function* operation(UserFunction* fortran) {
  return Slots<Operation<UserFunction, int>>::find(fortran);
}
MPI_User_function_c* operation(UserFunctionLarge* fortran) {
  return Slots<Operation<UserFunctionLarge, MPI_Count>>::find(fortran);
}

template <class Handle>
auto error_handler(ErrorFunction* fortran) -> void (*)(Handle*, int*, ...) {
  return Slots<OnError<Handle>>::find(fortran);
}
template auto error_handler<MPI_Comm>(ErrorFunction*) -> void (*)(MPI_Comm*, int*, ...);
template auto error_handler<MPI_File>(ErrorFunction*) -> void (*)(MPI_File*, int*, ...);
template auto error_handler<MPI_Session>(ErrorFunction*) -> void (*)(MPI_Session*, int*, ...);
template auto error_handler<MPI_Win>(ErrorFunction*) -> void (*)(MPI_Win*, int*, ...);

// --- Attributes.

void* box(MPI_Aint value) {
  void* attribute = new MPI_Aint(value);
  const std::lock_guard lock(boxes.mutex);
  boxes.all.insert(attribute);
  return attribute;
}

void unbox(void* attribute) {
  const std::lock_guard lock(boxes.mutex);
  if (boxes.all.erase(attribute) != 0) delete static_cast<MPI_Aint*>(attribute);
}

MPI_Aint attribute_value(void* attribute) {
  return is_box(attribute) ? *static_cast<MPI_Aint*>(attribute)
                           : reinterpret_cast<MPI_Aint>(attribute);
}

MPI_Aint attribute_value(int keyval, void* attribute) {
  switch (keyval) {
  case MPI_TAG_UB:
  case MPI_IO:
  case MPI_HOST:
  case MPI_WTIME_IS_GLOBAL:
  case MPI_APPNUM:
  case MPI_LASTUSEDCODE:
  case MPI_UNIVERSE_SIZE:
  case MPI_WIN_DISP_UNIT:
  case MPI_WIN_CREATE_FLAVOR:
  case MPI_WIN_MODEL:
    return *static_cast<int*>(attribute);
  case MPI_WIN_SIZE:
    return *static_cast<MPI_Aint*>(attribute);
  default: // also MPI_WIN_BASE, an address in both languages
    return attribute_value(attribute);
  }
}

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

template int copy_attribute(MPI_Comm, int, void*, void*, void*, int*);
template int copy_attribute(MPI_Datatype, int, void*, void*, void*, int*);
template int copy_attribute(MPI_Win, int, void*, void*, void*, int*);
template int delete_attribute(MPI_Comm, int, void*, void*);
template int delete_attribute(MPI_Datatype, int, void*, void*);
template int delete_attribute(MPI_Win, int, void*, void*);

// --- Generalized requests.

int query_generalized(void* state, MPI_Status* status) {
  auto& callbacks = *static_cast<Generalized*>(state);
  Fint ierror = MPI_SUCCESS;
  callbacks.query(&callbacks.state, reinterpret_cast<Fint*>(status), &ierror);
  return ierror;
}

int release_generalized(void* state) {
  const std::unique_ptr<Generalized> callbacks(static_cast<Generalized*>(state));
  Fint ierror = MPI_SUCCESS;
  callbacks->release(&callbacks->state, &ierror);
  return ierror;
}

int cancel_generalized(void* state, int complete) {
  auto& callbacks = *static_cast<Generalized*>(state);
  Fint ierror = MPI_SUCCESS;
  const Fint is_complete = logical(complete);
  callbacks.cancel(&callbacks.state, &is_complete, &ierror);
  return ierror;
}

// --- Data representations.

namespace {

template <class Count>
int convert(typename Representation<Count>::Convert* function, MPI_Aint* state, void* user,
            MPI_Datatype type, Count count, void* file, MPI_Offset position) {
  Fint datatype = number(type), ierror = MPI_SUCCESS;
  function(user, &datatype, &count, file, &position, state, &ierror);
  return ierror;
}

} // namespace

template <class Count>
int read_representation(void* user, MPI_Datatype type, Count count, void* file, MPI_Offset position,
                        void* state) {
  auto& callbacks = *static_cast<Representation<Count>*>(state);
  return convert<Count>(callbacks.read, &callbacks.state, user, type, count, file, position);
}

template <class Count>
int write_representation(void* user, MPI_Datatype type, Count count, void* file,
                         MPI_Offset position, void* state) {
  auto& callbacks = *static_cast<Representation<Count>*>(state);
  return convert<Count>(callbacks.write, &callbacks.state, user, type, count, file, position);
}

template <class Count>
int representation_extent(MPI_Datatype type, MPI_Aint* extent, void* state) {
  auto& callbacks = *static_cast<Representation<Count>*>(state);
  Fint datatype = number(type), ierror = MPI_SUCCESS;
  callbacks.extent(&datatype, extent, &callbacks.state, &ierror);
  return ierror;
}

template int read_representation(void*, MPI_Datatype, int, void*, MPI_Offset, void*);
template int read_representation(void*, MPI_Datatype, MPI_Count, void*, MPI_Offset, void*);
template int write_representation(void*, MPI_Datatype, int, void*, MPI_Offset, void*);
template int write_representation(void*, MPI_Datatype, MPI_Count, void*, MPI_Offset, void*);
template int representation_extent<int>(MPI_Datatype, MPI_Aint*, void*);
template int representation_extent<MPI_Count>(MPI_Datatype, MPI_Aint*, void*);

} // namespace macadam::fortran
