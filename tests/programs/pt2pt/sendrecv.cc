// SPDX-License-Identifier: BSD-3-Clause
// Sendrecv, Sendrecv_replace and their nonblocking forms: around a ring, to itself, to nobody.
#include "check.h"
#include "counter.h"

namespace {

enum class Way { plain, replace, nonblocking, nonblocking_replace };

void exchange(Way way, int bytes, int to, int from, std::uint64_t mine, std::uint64_t theirs) {
  const auto n = static_cast<std::size_t>(bytes);
  std::vector<unsigned char> out = check::message(n, mine), in(n, 0xEE);
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
  case Way::plain:
    OK(MPI_Sendrecv(out.data(), bytes, MPI_BYTE, to, 1, in.data(), bytes, MPI_BYTE, from, 1,
                    MPI_COMM_WORLD, &status));
    break;
  case Way::replace:
    OK(MPI_Sendrecv_replace(out.data(), bytes, MPI_BYTE, to, 1, from, 1, MPI_COMM_WORLD, &status));
    break;
  case Way::nonblocking:
    OK(MPI_Isendrecv(out.data(), bytes, MPI_BYTE, to, 1, in.data(), bytes, MPI_BYTE, from, 1,
                     MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    break;
  case Way::nonblocking_replace:
    OK(MPI_Isendrecv_replace(out.data(), bytes, MPI_BYTE, to, 1, from, 1, MPI_COMM_WORLD,
                             &request));
    OK(MPI_Wait(&request, &status));
    break;
  }
  const bool replaced = way == Way::replace || way == Way::nonblocking_replace;
  const unsigned char* result = replaced ? out.data() : in.data();
  // MPICH 5.0 leaves the status of the nonblocking forms as it was.
  const bool has_status = way == Way::plain || way == Way::replace || check::is_macadam();
  if (has_status) CHECK_EQUAL(status.MPI_SOURCE, from);
  if (from == MPI_PROC_NULL) {
    if (replaced)
      HOLDS(result, bytes, mine);
    else
      UNTOUCHED(result, bytes, 0xEE);
    return;
  }
  int count = bytes;
  if (has_status) OK(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK_EQUAL(count, bytes);
  HOLDS(result, bytes, theirs);
}

const std::vector<Way> ways = {Way::plain, Way::replace, Way::nonblocking,
                               Way::nonblocking_replace};

void ring() {
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  for (Way way : ways)
    for (int bytes : check::message_sizes())
      exchange(way, bytes, to, from, static_cast<std::uint64_t>(check::rank),
               static_cast<std::uint64_t>(from));
}

void itself() {
  for (Way way : ways)
    for (int bytes : check::message_sizes())
      exchange(way, bytes, check::rank, check::rank, 5, 5);
}

void nobody() {
  for (Way way : ways)
    for (int bytes : {0, 10, 100000})
      exchange(way, bytes, MPI_PROC_NULL, MPI_PROC_NULL, 5, 0);
  // The ends of a line talk to nobody on one side.
  const int to = check::rank + 1 < check::size ? check::rank + 1 : MPI_PROC_NULL;
  const int from = check::rank > 0 ? check::rank - 1 : MPI_PROC_NULL;
  for (Way way : ways)
    for (int bytes : {0, 10, 100000})
      exchange(way, bytes, to, from, static_cast<std::uint64_t>(check::rank),
               static_cast<std::uint64_t>(check::rank - 1));
}

void strided_replace() {
  MPI_Datatype column;
  const int rows = 3000, columns = 5;
  OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  std::vector<int> matrix(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < matrix.size(); ++i)
    matrix[i] = check::rank * 1000000 + static_cast<int>(i);
  OK(MPI_Sendrecv_replace(matrix.data() + 2, 1, column, to, 0, from, 0, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
  for (int i = 0; i < rows * columns; ++i)
    CHECK_EQUAL(matrix[static_cast<std::size_t>(i)],
                (i % columns == 2 ? from : check::rank) * 1000000 + i);
  OK(MPI_Type_free(&column));
}

// Who begins an exchange and computes leaves the data to the other: what is written by its sender
// alone would wait for the computation.
void computing_meanwhile() {
  if (check::size < 2 || !check::is_macadam() || std::getenv("MACADAM_RENDEZVOUS") != nullptr)
    return;
  const check::Counter written("send_rndv_write");
  for (int bytes : {100'000, 10'000'000}) {
    std::vector<unsigned char> out(static_cast<std::size_t>(bytes), 1), in(out.size());
    MPI_Request request = MPI_REQUEST_NULL;
    if (check::rank == 1) OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank < 2)
      OK(MPI_Isendrecv(out.data(), bytes, MPI_BYTE, 1 - check::rank, 1, in.data(), bytes, MPI_BYTE,
                       1 - check::rank, 1, MPI_COMM_WORLD, &request));
    if (check::rank != 1) OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  CHECK_EQUAL(written.since(), 0ULL);
}

// What is received is there; what is sent waits for its receive.
void there_already() {
  if (check::size < 2 || check::rank > 1) return;
  constexpr int longer = 1'000'000;
  std::vector<unsigned char> out(longer), in(longer);
  MPI_Status status;
  if (check::rank == 1) {
    OK(MPI_Send(out.data(), 7, MPI_BYTE, 0, 5, MPI_COMM_WORLD));
    OK(MPI_Recv(in.data(), longer, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &status));
    return;
  }
  OK(MPI_Probe(1, 5, MPI_COMM_WORLD, &status));
  OK(MPI_Sendrecv(out.data(), longer, MPI_BYTE, 1, 6, in.data(), 10, MPI_BYTE, 1, 5, MPI_COMM_WORLD,
                  &status));
  int count = 0;
  OK(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK_EQUAL(count, 7);
  CHECK_EQUAL(status.MPI_SOURCE, 1);
  CHECK_EQUAL(status.MPI_TAG, 5);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"ring", ring},
                     {"itself", itself},
                     {"nobody", nobody},
                     {"strided_replace", strided_replace},
                     {"there_already", there_already},
                     {"computing_meanwhile", computing_meanwhile}});
}
