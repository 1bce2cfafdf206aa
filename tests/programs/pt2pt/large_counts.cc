// SPDX-License-Identifier: BSD-3-Clause
// Counts beyond an int: the _c functions, statuses, and one message of more than 2 GiB.
#include "check.h"

#include <sys/mman.h>

namespace {

constexpr MPI_Count beyond_int = (MPI_Count{1} << 31) + 4097;

void large_functions_with_small_counts() {
  std::vector<int> out(1000), in(1000);
  for (int i = 0; i < 1000; ++i)
    out[static_cast<std::size_t>(i)] = i;
  MPI_Status status;
  MPI_Request requests[2];
  OK(MPI_Irecv_c(in.data(), 1000, MPI_INT, check::rank, 0, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Send_c(out.data(), 1000, MPI_INT, check::rank, 0, MPI_COMM_WORLD));
  OK(MPI_Wait(&requests[0], &status));
  MPI_Count count = 0, elements = 0;
  OK(MPI_Get_count_c(&status, MPI_INT, &count));
  OK(MPI_Get_elements_c(&status, MPI_INT, &elements));
  CHECK_EQUAL(count, 1000);
  CHECK_EQUAL(elements, 1000);
  CHECK(in == out);
  in.assign(1000, 0);
  OK(MPI_Recv_init_c(in.data(), 1000, MPI_INT, check::rank, 0, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Send_init_c(out.data(), 1000, MPI_INT, check::rank, 0, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Startall(2, requests));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(in == out);
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  in.assign(1000, 0);
  OK(MPI_Sendrecv_c(out.data(), 1000, MPI_INT, check::rank, 0, in.data(), 1000, MPI_INT,
                    check::rank, 0, MPI_COMM_WORLD, &status));
  CHECK(in == out);
}

void statuses() {
  MPI_Status status;
  std::memset(static_cast<void*>(&status), 0, sizeof status);
  OK(MPI_Status_set_elements_c(&status, MPI_BYTE, beyond_int));
  MPI_Count large = 0;
  int small = 0;
  OK(MPI_Get_count_c(&status, MPI_BYTE, &large));
  CHECK_EQUAL(large, beyond_int);
  OK(MPI_Get_elements_x(&status, MPI_BYTE, &large));
  CHECK_EQUAL(large, beyond_int);
  OK(MPI_Get_count(&status, MPI_BYTE, &small));
  CHECK_EQUAL(small, MPI_UNDEFINED);
  OK(MPI_Get_elements(&status, MPI_BYTE, &small));
  CHECK_EQUAL(small, MPI_UNDEFINED);
}

void datatypes() {
  MPI_Datatype type;
  OK(MPI_Type_contiguous_c(beyond_int, MPI_INT, &type));
  MPI_Count size = 0, lower = 0, extent = 0;
  int small = 0;
  OK(MPI_Type_size_c(type, &size));
  CHECK_EQUAL(size, 4 * beyond_int);
  OK(MPI_Type_size(type, &small));
  CHECK_EQUAL(small, MPI_UNDEFINED);
  OK(MPI_Type_get_extent_c(type, &lower, &extent));
  CHECK_EQUAL(lower, 0);
  CHECK_EQUAL(extent, 4 * beyond_int);
  OK(MPI_Type_free(&type));
}

// Memory of zeros that is only there where it was written.
unsigned char* sparse(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<unsigned char*>(memory);
}

void beyond_two_gib() {
  // Light: long enough to be cut into pieces by a network of which one takes 8 MiB at most.
  const MPI_Count length = check::light() ? MPI_Count{20} << 20 : beyond_int;
  const auto bytes = static_cast<std::size_t>(length);
  if (check::rank > 1 || check::size < 2) return;
  unsigned char* const data = sparse(bytes);
  const std::size_t marks[] = {
      0,         4096,         bytes / 3, std::size_t{1} << (check::light() ? 23 : 30),
      bytes / 2, bytes - 4100, bytes - 1};
  if (check::rank == 0) {
    for (std::size_t mark : marks)
      data[mark] = static_cast<unsigned char>(mark % 251 + 1);
    OK(MPI_Send_c(data, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
  } else {
    MPI_Status status;
    OK(MPI_Recv_c(data, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status));
    MPI_Count count = 0;
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    CHECK_EQUAL(count, length);
    for (std::size_t mark : marks) {
      CHECK_EQUAL(int{data[mark]}, static_cast<int>(mark % 251 + 1));
      data[mark] = 0;
    }
    const std::vector<unsigned char> zeros(1 << 20);
    for (std::size_t at = 0; at < bytes; at += zeros.size())
      CHECK(std::memcmp(data + at, zeros.data(), std::min(zeros.size(), bytes - at)) == 0);
  }
  munmap(data, bytes);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"large_functions_with_small_counts", large_functions_with_small_counts},
                     {"statuses", statuses},
                     {"datatypes", datatypes},
                     {"beyond_two_gib", beyond_two_gib}});
}
