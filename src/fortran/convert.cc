// SPDX-License-Identifier: BSD-3-Clause
#include "api/lengths.h"
#include "fortran/glue.h"

#include <cstring>
#include <string_view>

// Compilers align common blocks more than their contents need; so the linker can make ours one with
// them.
extern "C" {
alignas(64) int fortran_bottom[1], fortran_in_place[1], fortran_buffer_automatic[1];
alignas(64) int fortran_status_ignore[8], fortran_statuses_ignore[8], fortran_errcodes_ignore[1];
alignas(64) int fortran_unweighted[1], fortran_weights_empty[1];
alignas(64) char fortran_argv_null[1], fortran_argvs_null[1];
}

namespace macadam::fortran {

namespace {

std::string_view without_trailing(const char* text, std::size_t length) {
  while (length > 0 && text[length - 1] == ' ')
    --length;
  return {text, length};
}

std::string_view stripped(const char* text, std::size_t length) {
  std::string_view view = without_trailing(text, length);
  view.remove_prefix(std::min(view.find_first_not_of(' '), view.size()));
  return view;
}

} // namespace

String::String(const char* fortran, std::size_t length) : c_(without_trailing(fortran, length)) {}

Stripped::Stripped(const char* fortran, std::size_t length) : String(fortran, 0) {
  c_ = stripped(fortran, length);
}

OutString::OutString(char* fortran, std::size_t length, int capacity)
    : fortran_(fortran), length_(length), c_(capacity) {
  // What the call leaves as it is stays as it is.
  c_[0] = untouched;
}

OutString::~OutString() {
  if (c_[0] == untouched) return;
  const std::size_t used = std::min(strnlen(c_.data(), c_.size()), length_);
  std::memcpy(fortran_, c_.data(), used);
  std::memset(fortran_ + used, ' ', length_ - used);
}

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
