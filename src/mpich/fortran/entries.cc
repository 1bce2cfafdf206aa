// SPDX-License-Identifier: BSD-3-Clause
// The procedures that are written by hand, and those that only MPICH's ABI still has.
#include "mpich/fortran/start.h"
#include "mpich/meanings.h"

using namespace macadam::mpich::fortran;

#include "fortran/by_hand.h"

// --- Procedures of MPI 1 that were removed from the standard. Addresses are INTEGER there.

namespace {

using macadam::base::Scratch;

// An address as the result of such a procedure: if it is too large, the procedure fails.
int short_result(int code, MPI_Aint c, Fint* fortran) {
  if (code != MPI_SUCCESS) return code;
  *fortran = static_cast<Fint>(c);
  return *fortran == c ? MPI_SUCCESS : macadam::mpich::ErrorCode::out(MPI_ERR_ARG);
}

class Displacements {
 public:
  Displacements(const Fint* fortran, int length) : c_(length) {
    std::copy_n(fortran, c_.size(), c_.data());
  }
  operator MPI_Aint*() { return c_.data(); }

 private:
  Scratch<MPI_Aint> c_;
};

} // namespace

extern "C" {

void ENTRY(address, ADDRESS)(void* location, Fint* address, Fint* ierror) {
  MPI_Aint c = 0;
  const int code = CALL(Address)(c_address(location), &c);
  answer(ierror, short_result(code, c, address));
}

#define EXTENT(lower, UPPER, Name)                                                                 \
  void ENTRY(lower, UPPER)(const Fint* datatype, Fint* result, Fint* ierror) {                     \
    MPI_Aint c = 0;                                                                                \
    const int code = CALL(Name)(*datatype, &c);                                                    \
    answer(ierror, short_result(code, c, result));                                                 \
  }
EXTENT(type_extent, TYPE_EXTENT, Type_extent)
EXTENT(type_lb, TYPE_LB, Type_lb)
EXTENT(type_ub, TYPE_UB, Type_ub)
#undef EXTENT

void ENTRY(type_hindexed, TYPE_HINDEXED)(const Fint* count, Fint* lengths,
                                         const Fint* displacements, const Fint* old, Fint* made,
                                         Fint* ierror) {
  answer(ierror,
         CALL(Type_hindexed)(*count, lengths, Displacements(displacements, *count), *old, made));
}

void ENTRY(type_hvector, TYPE_HVECTOR)(const Fint* count, const Fint* length, const Fint* stride,
                                       const Fint* old, Fint* made, Fint* ierror) {
  answer(ierror, CALL(Type_hvector)(*count, *length, *stride, *old, made));
}

void ENTRY(type_struct, TYPE_STRUCT)(const Fint* count, Fint* lengths, const Fint* displacements,
                                     Fint* types, Fint* made, Fint* ierror) {
  answer(ierror,
         CALL(Type_struct)(*count, lengths, Displacements(displacements, *count), types, made));
}

void ENTRY(errhandler_create, ERRHANDLER_CREATE)(ErrorFunction* function, Fint* errhandler,
                                                 Fint* ierror) {
  answer(ierror, CALL(Errhandler_create)(error_handler<MPI_Comm>(function), errhandler));
}
void ENTRY(errhandler_get, ERRHANDLER_GET)(const Fint* comm, Fint* errhandler, Fint* ierror) {
  answer(ierror, CALL(Errhandler_get)(*comm, errhandler));
}
void ENTRY(errhandler_set, ERRHANDLER_SET)(const Fint* comm, const Fint* errhandler, Fint* ierror) {
  answer(ierror, CALL(Errhandler_set)(*comm, *errhandler));
}

} // extern "C"
