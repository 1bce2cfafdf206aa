// SPDX-License-Identifier: BSD-3-Clause
#include "mpich/fortran/start.h"

#include "base/slots.h"
#include "mpich/meanings.h"

// The values that MPICH is built with for gfortran. Other compilers take all odd ones for true.
const int macadam_fortran_logicals[2] = {1, 0};

// Compilers align common blocks more than their contents need, and so does this.
extern "C" {
alignas(64) int mpipriv1_[7], mpipriv2_[6], mpifcmb5_[1], mpifcmb9_[1], mpifcmba_[1];
alignas(64) char mpiprivc_[2];
}

namespace macadam::mpich::fortran {

namespace {

// The addresses of Fortran that programs in C know.
extern "C" void* mpich_status_ignore __asm__("MPI_F_STATUS_IGNORE");
extern "C" void* mpich_statuses_ignore __asm__("MPI_F_STATUSES_IGNORE");

struct Loaded {
  Loaded() {
    mpich_status_ignore = fortran_status_ignore;
    mpich_statuses_ignore = fortran_statuses_ignore;
  }
};
const Loaded loaded;

constexpr int null_comm = constants::communicators[0].mpich;

// Its number in the two ABIs of C; null unless it is predefined.
const Pair* predefined(Fint keyval) {
  if (keyval == constants::predefined_attributes[0].mpich) return nullptr; // MPI_KEYVAL_INVALID
  for (const Pair& pair : constants::predefined_attributes)
    if (pair.mpich + 1 == keyval) return &pair;
  return nullptr;
}

struct OnFileError {
  using User = ErrorFunction;
  static constexpr const char* where = "libmpifort.so.12 (MPICH's ABI)";
  static constexpr const char* name = "error handlers of files";
  template <std::size_t i>
  static void call(MPI_File* file, int* code, ...) {
    Fint fortran = mpich_profiled_File_c2f(*file);
    base::Slots<OnFileError>::functions[i](&fortran, code);
  }
};

} // namespace

int c_keyval(Fint keyval) {
  const Pair* pair = predefined(keyval);
  return pair == nullptr ? keyval : pair->mpich;
}

int standard_keyval(Fint keyval) {
  const Pair* pair = predefined(keyval);
  return pair == nullptr ? MPI_KEYVAL_INVALID : pair->standard;
}

ErrorFunctionInC<MPI_File>* file_error_handler(ErrorFunction* fortran) {
  return fortran == nullptr ? nullptr : base::Slots<OnFileError>::find(fortran);
}

// An error of these comes again, and is reported, in the call that asks.

bool is_here(const Fint* comm, Fint root) {
  int rank = -1;
  return *comm != null_comm && mpich_profiled_Comm_rank(*comm, &rank) == MPI_SUCCESS &&
         rank == root;
}

int dimensions(const Fint* comm) {
  int kind = MPI_UNDEFINED, number = 0;
  if (*comm != null_comm) mpich_profiled_Topo_test(*comm, &kind);
  const bool is_grid = kind == Topology::out(MPI_CART);
  return is_grid && mpich_profiled_Cartdim_get(*comm, &number) == MPI_SUCCESS ? number : 0;
}

} // namespace macadam::mpich::fortran
