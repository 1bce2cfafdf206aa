// SPDX-License-Identifier: BSD-3-Clause
#include "api/lengths.h"
#include "mpi/status.h"
#include "mpich/glue.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace macadam::mpich {

namespace {

constexpr const char* library_name = "libmpi_abi.so.1";

[[noreturn]] void refuse(const char* found) {
  std::fprintf(stderr,
               "libmpi.so.12 (MPICH's ABI): %s\n"
               "    needed: the libmpi_abi.so.1 that was installed with it\n",
               found);
  std::abort();
}

// Loaded already, as a library that this one needs.
Standard found() {
  void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) refuse(dlerror());
  Standard functions;
  static_assert(sizeof functions == sizeof standard_names);
  for (std::size_t i = 0; i < std::size(standard_names); ++i) {
    void* function = dlsym(library, standard_names[i]);
    if (function == nullptr) refuse(dlerror());
    std::memcpy(reinterpret_cast<char*>(&functions) + i * sizeof function, &function,
                sizeof function);
  }
  return functions;
}

} // namespace

const Standard standard = found();

MPI_Status standard_status(const Status& status) {
  MPI_Status result{};
  result.MPI_SOURCE = Rank::in(status.source);
  result.MPI_TAG = Tag::in(status.tag);
  result.MPI_ERROR = ErrorCode::in(status.error);
  const auto low = static_cast<std::uint32_t>(status.count_low);
  const auto high = static_cast<std::uint32_t>(status.count_high_and_cancelled);
  mpi::set_bytes(result, std::uint64_t{high >> 1} << 32 | low);
  mpi::set_cancelled(result, (high & 1) != 0);
  return result;
}

MPI_Status untouched_status() {
  MPI_Status status{};
  status.MPI_SOURCE = status.MPI_ERROR = INT_MIN; // no rank, no error
  return status;
}

void write_status(Status& mpich, const MPI_Status& status) {
  if (status.MPI_SOURCE != INT_MIN) {
    const std::uint64_t bytes = mpi::bytes(status);
    mpich.count_low = static_cast<int>(bytes);
    mpich.count_high_and_cancelled =
        static_cast<int>(bytes >> 32 << 1 | (mpi::cancelled(status) ? 1u : 0u));
    mpich.source = Rank::out(status.MPI_SOURCE);
    mpich.tag = Tag::out(status.MPI_TAG);
  }
  if (status.MPI_ERROR != INT_MIN) mpich.error = ErrorCode::out(status.MPI_ERROR);
}

int peers(int comm) {
  return api::peers(standard, handle<MPI_Comm>(comm));
}
int dimensions(int comm) {
  return api::dimensions(standard, handle<MPI_Comm>(comm));
}
int in_neighbors(int comm) {
  return api::neighbors(standard, handle<MPI_Comm>(comm)).in;
}
int out_neighbors(int comm) {
  return api::neighbors(standard, handle<MPI_Comm>(comm)).out;
}

} // namespace macadam::mpich
