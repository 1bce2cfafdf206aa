// SPDX-License-Identifier: BSD-3-Clause
#include "api/lengths.h"
#include "fortran/glue.h"

// Compilers align common blocks more than their contents need; so the linker can make ours one with
// them.
extern "C" {
alignas(64) int fortran_bottom[1], fortran_in_place[1], fortran_buffer_automatic[1];
alignas(64) int fortran_status_ignore[8], fortran_statuses_ignore[8], fortran_errcodes_ignore[1];
alignas(64) int fortran_unweighted[1], fortran_weights_empty[1];
alignas(64) char fortran_argv_null[1], fortran_argvs_null[1];
}

namespace macadam::fortran {

// --- Lengths.

namespace {

struct Profiled {
  static constexpr auto Comm_test_inter = PMPI_Comm_test_inter;
  static constexpr auto Comm_remote_size = PMPI_Comm_remote_size;
  static constexpr auto Comm_size = PMPI_Comm_size;
  static constexpr auto Comm_rank = PMPI_Comm_rank;
  static constexpr auto Topo_test = PMPI_Topo_test;
  static constexpr auto Cartdim_get = PMPI_Cartdim_get;
  static constexpr auto Graph_neighbors_count = PMPI_Graph_neighbors_count;
  static constexpr auto Dist_graph_neighbors_count = PMPI_Dist_graph_neighbors_count;
};

} // namespace

int peers(const Fint* comm) {
  return api::peers(Profiled(), handle<MPI_Comm>(comm));
}
int dimensions(const Fint* comm) {
  return api::dimensions(Profiled(), handle<MPI_Comm>(comm));
}
int in_neighbors(const Fint* comm) {
  return api::neighbors(Profiled(), handle<MPI_Comm>(comm)).in;
}
int out_neighbors(const Fint* comm) {
  return api::neighbors(Profiled(), handle<MPI_Comm>(comm)).out;
}

} // namespace macadam::fortran
