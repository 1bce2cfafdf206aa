// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/exchange.h"

#include "gravel/error.h"

namespace macadam::libgravel {
namespace {

void check(int code, const char* function) {
  if (code != MPI_SUCCESS)
    gravel::fail(gravel::Code::system, "{} of the MPI that is running returned error code {}",
                 function, code);
}

} // namespace

Exchange::Exchange(MPI_Comm comm) : comm_(comm) {
  int initialized = 0, finalized = 0;
  check(MPI_Initialized(&initialized), "MPI_Initialized");
  check(MPI_Finalized(&finalized), "MPI_Finalized");
  if (initialized == 0 || finalized != 0)
    gravel::fail(gravel::Code::state, "MPI is not running; call this after MPI_Init() and before "
                                      "MPI_Finalize()");
  if (comm == MPI_COMM_NULL)
    gravel::fail(gravel::Code::argument, "the communicator is MPI_COMM_NULL");
  int inter = 0;
  check(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  if (inter != 0)
    gravel::fail(gravel::Code::argument, "the communicator is an inter-communicator; ranks of one "
                                         "group are needed");
  int rank = 0, size = 0;
  check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  rank_ = static_cast<std::uint32_t>(rank);
  size_ = static_cast<std::uint32_t>(size);
}

void Exchange::gather(const void* own, void* all, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  check(MPI_Allgather(own, count, MPI_BYTE, all, count, MPI_BYTE, comm_), "MPI_Allgather");
}

void Exchange::refuse(std::uint32_t rank, const char* trouble) {
  gravel::fail(gravel::Code::system, "rank {} cannot start: {}", rank, trouble);
}

} // namespace macadam::libgravel
