// SPDX-License-Identifier: BSD-3-Clause
// Messages of every protocol between all ranks, checked byte by byte, for TRAFFIC_SECONDS, in
// TRAFFIC_ROUNDS rounds, or until something outside breaks: test_failures.py kills a rank or takes
// the link down. What arrives must be right to the end, and what fails must say so.
#include "check.h"

#include <unistd.h>

namespace {

constexpr int sizes[] = {8, 1000, 9000, 70000, 300000};

double longest() {
  const char* const seconds = std::getenv("TRAFFIC_SECONDS");
  return seconds != nullptr ? std::atof(seconds) : 60; // by then it should have been broken
}

// Ends the program, as the test expects it to.
void failed(int code, int peer) {
  std::printf("rank %d: an operation with rank %d failed: %s\n", check::rank, peer,
              check::error_text(code).c_str());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, check::error_class(code) == MPI_ERR_PROC_ABORTED ? 3 : 4);
}

void exchange(int round, int distance) {
  const int bytes = sizes[round % 5];
  const auto length = static_cast<std::size_t>(bytes);
  const int to = (check::rank + distance) % check::size;
  const int from = (check::rank + check::size - distance) % check::size;
  const auto seed = [&](int sender) { return static_cast<std::uint64_t>(round * 64 + sender); };
  const std::vector<unsigned char> out = check::message(length, seed(check::rank));
  std::vector<unsigned char> in(length);
  MPI_Request requests[2];
  const int peers[2] = {from, to};
  int code = MPI_Irecv(in.data(), bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, &requests[0]);
  if (code != MPI_SUCCESS) failed(code, from);
  code = MPI_Isend(out.data(), bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[1]);
  if (code != MPI_SUCCESS) failed(code, to);
  for (int i = 0; i < 2; ++i) {
    code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) failed(code, peers[i]);
  }
  HOLDS(in.data(), length, seed(from));
}

// Rank 0 decides for all, by its clock if no number of rounds is given.
bool goes_on(int round, double begin) {
  const char* const rounds = std::getenv("TRAFFIC_ROUNDS");
  int more = rounds != nullptr ? round < std::atoi(rounds) : MPI_Wtime() - begin < longest();
  if (const int code = MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD); code != MPI_SUCCESS)
    failed(code, 0);
  return more != 0;
}

void traffic() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const double begin = MPI_Wtime();
  for (int round = 0; goes_on(round, begin); ++round) {
    for (int distance = 1; distance < check::size; ++distance)
      exchange(round, distance);
    if (round == 10) {
      std::printf("rank %d runs as %d\n", check::rank, static_cast<int>(getpid()));
      std::fflush(stdout);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"traffic", traffic}});
}
