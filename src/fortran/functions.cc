// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/functions.h"

#include "base/slots.h"

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

} // namespace macadam::fortran
