// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/start.h"

#include <cstdio>
#include <string>

extern "C" {
// From compiler.f90: sizes in bytes of LOGICAL, INTEGER, REAL and DOUBLE PRECISION, and then for
// each of the types below whether the compiler has it.
extern const int macadam_fortran_types[23];
}

namespace macadam::fortran {

namespace {

constexpr const char* keys[] = {"mpi_logical_size",
                                "mpi_integer_size",
                                "mpi_real_size",
                                "mpi_double_precision_size",
                                "mpi_logical1_supported",
                                "mpi_logical2_supported",
                                "mpi_logical4_supported",
                                "mpi_logical8_supported",
                                "mpi_logical16_supported",
                                "mpi_integer1_supported",
                                "mpi_integer2_supported",
                                "mpi_integer4_supported",
                                "mpi_integer8_supported",
                                "mpi_integer16_supported",
                                "mpi_real2_supported",
                                "mpi_real4_supported",
                                "mpi_real8_supported",
                                "mpi_real16_supported",
                                "mpi_complex4_supported",
                                "mpi_complex8_supported",
                                "mpi_complex16_supported",
                                "mpi_complex32_supported",
                                "mpi_double_complex_supported"};
static_assert(std::size(keys) == std::size(macadam_fortran_types));
constexpr std::size_t sizes = 4;

void describe_logicals() {
  Fint yes = 0, no = 0;
  int is_set = 0;
  if (PMPI_Abi_get_fortran_booleans(sizeof(Fint), &yes, &no, &is_set) != MPI_SUCCESS) return;
  if (is_set == 0) {
    yes = fortran_true;
    no = fortran_false;
    PMPI_Abi_set_fortran_booleans(sizeof(Fint), &yes, &no);
  } else if (yes != fortran_true || no != fortran_false) {
    std::fprintf(
        stderr,
        "MPI in Fortran: .TRUE. and .FALSE. are %d and %d here, but the MPI library has been "
        "told %d and %d; reductions of LOGICAL may go wrong\n",
        fortran_true, fortran_false, yes, no);
  }
}

void describe_types() {
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS) return;
  if (info == MPI_INFO_NULL && PMPI_Info_create(&info) == MPI_SUCCESS) {
    for (std::size_t i = 0; i < std::size(keys); ++i) {
      const int value = macadam_fortran_types[i];
      const std::string text = i < sizes ? std::to_string(value) : value != 0 ? "true" : "false";
      PMPI_Info_set(info, keys[i], text.c_str());
    }
    PMPI_Abi_set_fortran_info(info);
  }
  if (info != MPI_INFO_NULL) PMPI_Info_free(&info);
}

} // namespace

int started(int code) {
  if (code == MPI_SUCCESS) {
    describe_logicals();
    describe_types();
  }
  return code;
}

bool is_here(const Fint* comm, Fint root) {
  int rank = MPI_PROC_NULL;
  const MPI_Comm c = handle<MPI_Comm>(comm);
  return c != MPI_COMM_NULL && PMPI_Comm_rank(c, &rank) == MPI_SUCCESS && rank == root;
}

} // namespace macadam::fortran
