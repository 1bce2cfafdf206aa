// SPDX-License-Identifier: BSD-3-Clause
// The procedures that are written by hand, and those of mpi_f08 alone.
#include "fortran/functions.h"
#include "fortran/section.h"
#include "fortran/start.h"

using namespace macadam::fortran;

#include "fortran/by_hand.h"

extern "C" {

void F08(op_create_c, OP_CREATE_C)(UserFunctionLarge* function, const Fint* commute, Fint* op,
                                   Fint* ierror) {
  answer(ierror, CALL(Op_create_c)(operation(function), truth(*commute), Out<MPI_Op>(op)));
}

REGISTER(F08, register_datarep_c, REGISTER_DATAREP_C, Register_datarep_c, MPI_Count,
         MACADAM_NAME(mpi_conversion_fn_null_c, MPI_CONVERSION_FN_NULL_C))

// --- In Fortran only.

void F08TS(sizeof)(const CFI_cdesc_t* x, Fint* size, Fint* ierror) {
  *size = static_cast<Fint>(x->elem_len);
  answer(ierror, MPI_SUCCESS);
}

void F08TS(f_sync_reg)(const CFI_cdesc_t*) {}

void ENTRY(status_f2f08, STATUS_F2F08)(const Fint* from, Fint* to, Fint* ierror) {
  std::copy_n(from, MPI_F_STATUS_SIZE, to);
  answer(ierror, MPI_SUCCESS);
}
ALSO_F08(status_f2f08, STATUS_F2F08)

void ENTRY(status_f082f, STATUS_F082F)(const Fint* from, Fint* to, Fint* ierror) {
  std::copy_n(from, MPI_F_STATUS_SIZE, to);
  answer(ierror, MPI_SUCCESS);
}
ALSO_F08(status_f082f, STATUS_F082F)

} // extern "C"
