// SPDX-License-Identifier: BSD-3-Clause
// Guidelines that users expect to hold, as no program should gain by writing one collective with
// others (Träff, Gropp, Thakur: Self-consistent MPI performance requirements, 2007): a reduce takes
// no longer than an allreduce, an allreduce no longer than a reduce and a broadcast, and so on. In
// virtual time, so the same in every run; what is more than a tenth and half a microsecond over is
// an error.
//
//   guidelines [shortest and longest vector, bytes]
#include <mpi.h>

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr double tolerance = 1.1, least_us = 0.5;
constexpr int repeats = 3;

int rank, ranks;
bool each_alone; // on a machine

// Microseconds until the last rank is done, when all begin at the same time: MPI_Wtime is the same
// on all ranks here.
double time_of(const std::function<void()>& call) {
  double best = 1e30;
  for (int i = 0; i <= repeats; ++i) {
    double now = MPI_Wtime(), begin = 0, end = 0;
    MPI_Allreduce(&now, &begin, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    begin += 100e-6;
    const auto wait = static_cast<long>((begin - MPI_Wtime()) * 1e9);
    const timespec until_begin{0, wait};
    nanosleep(&until_begin, nullptr);
    call();
    now = MPI_Wtime();
    MPI_Allreduce(&now, &end, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i > 0) best = std::min(best, (end - begin) * 1e6); // the first one connects
  }
  return best;
}

int violations;
void expect_no_longer(const std::string& what, double took, const std::string& than, double other,
                      int bytes) {
  if (took <= other * tolerance + least_us) return;
  ++violations;
  if (rank == 0)
    std::printf("%d ranks, %d bytes: %s takes %.2f us, %s %.2f\n", ranks, bytes, what.c_str(), took,
                than.c_str(), other);
}

// A vector of so many bytes, which gathers and scatters have a part of on each rank.
void check(int bytes) {
  const int count = std::max(bytes / static_cast<int>(sizeof(float)) / ranks, 1);
  const int all = count * ranks;
  std::vector<float> in(static_cast<std::size_t>(all), 1), out(static_cast<std::size_t>(all));
  const auto world = MPI_COMM_WORLD;
  const auto of = [](auto call) { return time_of(call); };
  const double bcast = of([&] { MPI_Bcast(in.data(), all, MPI_FLOAT, 0, world); });
  const double reduce =
      of([&] { MPI_Reduce(in.data(), out.data(), all, MPI_FLOAT, MPI_SUM, 0, world); });
  const double allreduce =
      of([&] { MPI_Allreduce(in.data(), out.data(), all, MPI_FLOAT, MPI_SUM, world); });
  // In place, as a bcast copies nothing at its root either.
  void* const given = rank == 0 ? MPI_IN_PLACE : in.data();
  const double gather =
      of([&] { MPI_Gather(given, count, MPI_FLOAT, out.data(), count, MPI_FLOAT, 0, world); });
  void* const taken = rank == 0 ? MPI_IN_PLACE : out.data();
  const double scatter =
      of([&] { MPI_Scatter(in.data(), count, MPI_FLOAT, taken, count, MPI_FLOAT, 0, world); });
  const double allgather =
      of([&] { MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, out.data(), count, MPI_FLOAT, world); });
  const double alltoall =
      of([&] { MPI_Alltoall(in.data(), count, MPI_FLOAT, out.data(), count, MPI_FLOAT, world); });
  const double reduce_scatter = of(
      [&] { MPI_Reduce_scatter_block(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, world); });
  const double scan = of([&] { MPI_Scan(in.data(), out.data(), all, MPI_FLOAT, MPI_SUM, world); });
  const double exscan =
      of([&] { MPI_Exscan(in.data(), out.data(), all, MPI_FLOAT, MPI_SUM, world); });
  const int length = all * static_cast<int>(sizeof(float));
  expect_no_longer("reduce", reduce, "allreduce", allreduce, length);
  expect_no_longer("gather", gather, "allgather", allgather, length);
  expect_no_longer("gather", gather, "reduce", reduce, length);
  expect_no_longer("scatter", scatter, "bcast", bcast, length);
  if (each_alone) // inside a machine the kernel copies alltoall's blocks, faster than a real one
    expect_no_longer("allgather", allgather, "alltoall", alltoall, length);
  expect_no_longer("allgather", allgather, "gather and bcast", gather + bcast, length);
  expect_no_longer("allgather", allgather, "allreduce", allreduce, length);
  expect_no_longer("bcast", bcast, "scatter and allgather", scatter + allgather, length);
  expect_no_longer("allreduce", allreduce, "reduce and bcast", reduce + bcast, length);
  expect_no_longer("allreduce", allreduce, "reduce_scatter and allgather",
                   reduce_scatter + allgather, length);
  expect_no_longer("reduce", reduce, "reduce_scatter and gather", reduce_scatter + gather, length);
  expect_no_longer("reduce_scatter", reduce_scatter, "reduce and scatter", reduce + scatter,
                   length);
  expect_no_longer("reduce_scatter", reduce_scatter, "allreduce", allreduce, length);
  expect_no_longer("exscan", exscan, "scan", scan, length);
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm machine;
  int neighbours = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &neighbours);
  MPI_Comm_free(&machine);
  each_alone = neighbours == 1;
  const int shortest = argc > 1 ? std::atoi(argv[1]) : 64;
  const int longest = argc > 2 ? std::atoi(argv[2]) : 1 << 20;
  // After so many, ranks are connected to all others.
  constexpr int frequent = 200;
  for (int i = 0; i < frequent; ++i)
    MPI_Barrier(MPI_COMM_WORLD);
  for (int bytes = shortest; bytes <= longest; bytes *= 4)
    check(bytes);
  MPI_Finalize();
  return violations == 0 ? 0 : 1;
}
