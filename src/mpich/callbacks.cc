// SPDX-License-Identifier: BSD-3-Clause
#include "mpich/callbacks.h"

#include "base/slots.h"

namespace macadam::mpich {

namespace {

using base::Slots;

constexpr const char* in_this_abi = "libmpi.so.12 (MPICH's ABI)";

template <class Count>
struct Operation {
  using User = UserFunction<Count>;
  static constexpr const char* where = in_this_abi;
  static constexpr const char* name = "functions for MPI_Op_create";
  template <std::size_t i>
  static void call(void* in, void* inout, Count* length, MPI_Datatype* datatype) {
    int type = of_mpich_for_now(*datatype);
    Slots<Operation>::functions[i](in, inout, length, &type);
  }
};

template <class Handle>
struct OnError {
  using User = ErrorFunction<Handle>;
  static constexpr const char* where = in_this_abi;
  static constexpr const char* name = "error handlers";
  template <std::size_t i>
  static void call(Handle* object, int* standard_code, ...) {
    auto owner = of_mpich_for_now(*object);
    int its_code = code(*standard_code);
    Slots<OnError>::functions[i](&owner, &its_code);
  }
};

} // namespace

template <class Count>
auto operation(UserFunction<Count>* function) -> void (*)(void*, void*, Count*, MPI_Datatype*) {
  return function == nullptr ? nullptr : Slots<Operation<Count>>::find(function);
}
template auto operation(UserFunction<int>*) -> void (*)(void*, void*, int*, MPI_Datatype*);
template auto operation(UserFunction<MPI_Count>*)
    -> void (*)(void*, void*, MPI_Count*, MPI_Datatype*);

template <class Handle>
auto error_handler(ErrorFunction<Handle>* function) -> void (*)(Handle*, int*, ...) {
  return function == nullptr ? nullptr : Slots<OnError<Handle>>::find(function);
}
template auto error_handler<MPI_Comm>(ErrorFunction<MPI_Comm>*) -> void (*)(MPI_Comm*, int*, ...);
template auto error_handler<MPI_File>(ErrorFunction<MPI_File>*) -> void (*)(MPI_File*, int*, ...);
template auto error_handler<MPI_Session>(ErrorFunction<MPI_Session>*)
    -> void (*)(MPI_Session*, int*, ...);
template auto error_handler<MPI_Win>(ErrorFunction<MPI_Win>*) -> void (*)(MPI_Win*, int*, ...);

// --- Attributes.

template <class Handle>
int copy_attribute(Handle old, int keyval, void* state, void* in, void* out, int* flag) {
  const auto& functions = *static_cast<const AttributeFunctions*>(state);
  *flag = 0;
  if (functions.copy == nullptr) return MPI_SUCCESS;
  return ErrorCode::in(
      functions.copy(of_mpich_for_now(old), keyval, functions.state, in, out, flag));
}

template <class Handle>
int delete_attribute(Handle object, int keyval, void* value, void* state) {
  const auto& functions = *static_cast<const AttributeFunctions*>(state);
  if (functions.remove == nullptr) return MPI_SUCCESS;
  return ErrorCode::in(functions.remove(of_mpich_for_now(object), keyval, value, functions.state));
}

template int copy_attribute(MPI_Comm, int, void*, void*, void*, int*);
template int copy_attribute(MPI_Datatype, int, void*, void*, void*, int*);
template int copy_attribute(MPI_Win, int, void*, void*, void*, int*);
template int delete_attribute(MPI_Comm, int, void*, void*);
template int delete_attribute(MPI_Datatype, int, void*, void*);
template int delete_attribute(MPI_Win, int, void*, void*);

// --- Generalized requests.

int query_generalized(void* state, MPI_Status* status) {
  const auto& functions = *static_cast<const Generalized*>(state);
  Status its_status{};
  write_status(its_status, *status);
  const int answer =
      functions.query == nullptr ? MPI_SUCCESS : functions.query(functions.state, &its_status);
  *status = standard_status(its_status);
  return ErrorCode::in(answer);
}

int release_generalized(void* state) {
  // Nothing is left to do behind the call, which an exception may leave.
  const Generalized functions = *static_cast<const Generalized*>(state);
  delete static_cast<const Generalized*>(state);
  if (functions.release == nullptr) return MPI_SUCCESS;
  return ErrorCode::in(functions.release(functions.state));
}

int cancel_generalized(void* state, int complete) {
  const auto& functions = *static_cast<const Generalized*>(state);
  if (functions.cancel == nullptr) return MPI_SUCCESS;
  return ErrorCode::in(functions.cancel(functions.state, complete));
}

// --- Data representations.

template <class Count>
int read_representation(void* user, MPI_Datatype type, Count count, void* file, MPI_Offset position,
                        void* state) {
  const auto& functions = *static_cast<const Representation<Count>*>(state);
  return ErrorCode::in(
      functions.read(user, of_mpich_for_now(type), count, file, position, functions.state));
}

template <class Count>
int write_representation(void* user, MPI_Datatype type, Count count, void* file,
                         MPI_Offset position, void* state) {
  const auto& functions = *static_cast<const Representation<Count>*>(state);
  return ErrorCode::in(
      functions.write(user, of_mpich_for_now(type), count, file, position, functions.state));
}

template <class Count>
int representation_extent(MPI_Datatype type, MPI_Aint* extent, void* state) {
  const auto& functions = *static_cast<const Representation<Count>*>(state);
  return ErrorCode::in(functions.extent(of_mpich_for_now(type), extent, functions.state));
}

template int read_representation(void*, MPI_Datatype, int, void*, MPI_Offset, void*);
template int read_representation(void*, MPI_Datatype, MPI_Count, void*, MPI_Offset, void*);
template int write_representation(void*, MPI_Datatype, int, void*, MPI_Offset, void*);
template int write_representation(void*, MPI_Datatype, MPI_Count, void*, MPI_Offset, void*);
template int representation_extent<int>(MPI_Datatype, MPI_Aint*, void*);
template int representation_extent<MPI_Count>(MPI_Datatype, MPI_Aint*, void*);

} // namespace macadam::mpich
