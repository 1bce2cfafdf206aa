// SPDX-License-Identifier: BSD-3-Clause
// With MACADAM_REPRODUCIBLE equal reductions have equal bits: in each form, however many
// collectives were before, on each communicator of as many ranks. Prints a number that stands for
// the bits, to be compared with that of other runs.
#include "forms.h"

#include <cmath>
#include <cstring>
#include <mpi.h>

namespace {

using Values = std::vector<double>;
std::uint64_t digest = 0;

// Which the order of additions matters for.
Values values_of(int rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] =
        std::sin(static_cast<double>(i + 1) * (rank + 1)) * std::pow(10, (rank * 5 + 3) % 7);
  return values;
}

// All that this rank gets, in one form.
Values reduce_all(Form form, MPI_Comm comm, std::size_t count) {
  int rank = 0, size = 0;
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Comm_size(comm, &size));
  const int n = static_cast<int>(count);
  const int root = size - 1;
  Values mine = values_of(rank, count * static_cast<std::size_t>(size)), all;
  Values result(count);
  const auto keep = [&](bool here) {
    if (here) all.insert(all.end(), result.begin(), result.end());
  };
  COLLECTIVE(form, Reduce, reduce, mine.data(), result.data(), n, MPI_DOUBLE, MPI_SUM, root, comm);
  keep(rank == root);
  COLLECTIVE(form, Allreduce, allreduce, mine.data(), result.data(), n, MPI_DOUBLE, MPI_SUM, comm);
  keep(true);
  COLLECTIVE(form, Reduce_scatter_block, reduce_scatter_block, mine.data(), result.data(), n,
             MPI_DOUBLE, MPI_SUM, comm);
  keep(true);
  COLLECTIVE(form, Scan, scan, mine.data(), result.data(), n, MPI_DOUBLE, MPI_SUM, comm);
  keep(true);
  return all;
}

bool are_same(const Values& one, const Values& other) {
  return one.size() == other.size() &&
         std::memcmp(one.data(), other.data(), one.size() * sizeof(double)) == 0;
}

void add_to_digest(const Values& values) {
  for (const double value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    digest = digest * 1099511628211U + bits;
  }
}

void reproducible() {
  MPI_Comm again = MPI_COMM_NULL;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &again));
  for (const std::size_t count : {1, 40, 700, 5000, 30000}) {
    const Values first = reduce_all(Form::blocking, MPI_COMM_WORLD, count);
    add_to_digest(first);
    for (const Form form : forms)
      for (int i = 0; i < 5; ++i)
        CHECK(are_same(reduce_all(form, MPI_COMM_WORLD, count), first));
    for (int i = 0; i < 150; ++i)
      OK(MPI_Barrier(again));
    for (const Form form : forms)
      CHECK(are_same(reduce_all(form, again, count), first));
  }
  OK(MPI_Comm_free(&again));
  std::uint64_t of_all = 0;
  OK(MPI_Reduce(&digest, &of_all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD));
  if (check::rank == 0) std::printf("bits %016llx\n", static_cast<unsigned long long>(of_all));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"reproducible", reproducible}});
}
