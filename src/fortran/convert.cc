// SPDX-License-Identifier: BSD-3-Clause
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

// --- Lengths. An error here comes again, and is reported, in the call itself.

int peers(const Fint* comm) {
  const MPI_Comm c = handle<MPI_Comm>(comm);
  int is_inter = 0, size = 0;
  if (c == MPI_COMM_NULL || PMPI_Comm_test_inter(c, &is_inter) != MPI_SUCCESS) return 0;
  const int code = is_inter != 0 ? PMPI_Comm_remote_size(c, &size) : PMPI_Comm_size(c, &size);
  return code == MPI_SUCCESS ? size : 0;
}

namespace {

int topology(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  if (comm != MPI_COMM_NULL) PMPI_Topo_test(comm, &kind);
  return kind;
}

// How many neighbors a rank receives from and sends to (MPI 5.0, section 8.6).
struct Neighbors {
  explicit Neighbors(MPI_Comm comm) {
    int rank = 0, weighted = 0;
    switch (topology(comm)) {
    case MPI_CART:
      if (PMPI_Cartdim_get(comm, &in) == MPI_SUCCESS) out = in *= 2;
      break;
    case MPI_GRAPH:
      PMPI_Comm_rank(comm, &rank);
      if (PMPI_Graph_neighbors_count(comm, rank, &in) == MPI_SUCCESS) out = in;
      break;
    case MPI_DIST_GRAPH:
      PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
      break;
    default: // the call refuses it
      break;
    }
  }
  int in = 0;
  int out = 0;
};

} // namespace

int dimensions(const Fint* comm) {
  const MPI_Comm c = handle<MPI_Comm>(comm);
  int number = 0;
  return topology(c) == MPI_CART && PMPI_Cartdim_get(c, &number) == MPI_SUCCESS ? number : 0;
}

int in_neighbors(const Fint* comm) {
  return Neighbors(handle<MPI_Comm>(comm)).in;
}

int out_neighbors(const Fint* comm) {
  return Neighbors(handle<MPI_Comm>(comm)).out;
}

} // namespace macadam::fortran
