// SPDX-License-Identifier: BSD-3-Clause
// The synthetic programs of Wu et al., Table 2: each makes the connections that its operation
// needs.
#include "sim/patterns/pattern.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <vector>

namespace macadam::sim {
namespace {

std::vector<char> buffer(std::int64_t bytes) {
  return std::vector<char>(static_cast<std::size_t>(bytes));
}

// Calls `operation` as often as asked for, and measures it; where more than once, after as many
// that make the connections and whatever the library comes to do only for what is called often.
template <class Operation>
void repeat(Context& context, Operation&& operation) {
  const std::int64_t iterations = context.parameters.number("iterations", 1);
  for (std::int64_t i = 0; iterations > 1 && i < iterations; ++i)
    operation();
  const double start = MPI_Wtime();
  for (std::int64_t i = 0; i < iterations; ++i)
    operation();
  const double each =
      (MPI_Wtime() - start) / static_cast<double>(std::max<std::int64_t>(iterations, 1));
  if (context.rank == 0) context.rows.push_back({"operation", {{"time_us", each * 1e6}}});
}

void ring(Context& context) {
  const auto bytes = static_cast<int>(context.parameters.number("bytes", 1024));
  auto out = buffer(bytes), in = buffer(bytes);
  const int right = (context.rank + 1) % context.size;
  const int left = (context.rank + context.size - 1) % context.size;
  repeat(context, [&] {
    MPI_Sendrecv(out.data(), bytes, MPI_BYTE, right, 0, in.data(), bytes, MPI_BYTE, left, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
}

void barrier(Context& context) {
  repeat(context, [] { MPI_Barrier(MPI_COMM_WORLD); });
}

// A barrier by empty exchanges, recursive doubling whoever is connected, as in the library of Wu et
// al.; what is left over of a power of two waits for one of the first ranks. MPI_Barrier takes
// other forms where all are connected.
void exchanges(Context& context) {
  int doubled = 1;
  while (2 * doubled <= context.size)
    doubled *= 2;
  const auto exchange = [](int peer) {
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, peer, 0, nullptr, 0, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  };
  repeat(context, [&, rank = context.rank] {
    if (rank >= doubled) {
      MPI_Send(nullptr, 0, MPI_BYTE, rank - doubled, 0, MPI_COMM_WORLD);
      MPI_Recv(nullptr, 0, MPI_BYTE, rank - doubled, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return;
    }
    const bool has_more = rank + doubled < context.size;
    if (has_more)
      MPI_Recv(nullptr, 0, MPI_BYTE, rank + doubled, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int distance = 1; distance < doubled; distance *= 2)
      exchange(rank ^ distance);
    if (has_more) MPI_Send(nullptr, 0, MPI_BYTE, rank + doubled, 0, MPI_COMM_WORLD);
  });
}

void allreduce(Context& context) {
  const auto count = static_cast<int>(context.parameters.number("bytes", 8) / 8);
  std::vector<double> in(static_cast<std::size_t>(count)), out(in.size());
  repeat(context,
         [&] { MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
}

void alltoall(Context& context) {
  const std::int64_t bytes = context.parameters.number("bytes", 64);
  auto in = buffer(bytes * context.size), out = buffer(bytes * context.size);
  const auto block = static_cast<int>(bytes);
  repeat(context, [&] {
    MPI_Alltoall(in.data(), block, MPI_BYTE, out.data(), block, MPI_BYTE, MPI_COMM_WORLD);
  });
}

void allgather(Context& context) {
  const std::int64_t bytes = context.parameters.number("bytes", 64);
  auto in = buffer(bytes), out = buffer(bytes * context.size);
  const auto block = static_cast<int>(bytes);
  repeat(context, [&] {
    MPI_Allgather(in.data(), block, MPI_BYTE, out.data(), block, MPI_BYTE, MPI_COMM_WORLD);
  });
}

void bcast(Context& context) {
  const auto bytes = static_cast<int>(context.parameters.number("bytes", 1024));
  auto data = buffer(bytes);
  repeat(context, [&] { MPI_Bcast(data.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD); });
}

// Rank 0 is connected to all: what a process holds in a large job where not everyone talks to
// everyone.
void star(Context& context) {
  if (context.rank != 0) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int peer = 1; peer < context.size; ++peer)
    MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

// Nothing but the start and the end of MPI.
void start(Context&) {}

constexpr std::array all = {
    Pattern{"start", "MPI_Init and MPI_Finalize", start},
    Pattern{"star", "an empty message from rank 0 to each other rank", star},
    Pattern{"ring", "a message to the right neighbour", ring},
    Pattern{"barrier", "MPI_Barrier", barrier},
    Pattern{"exchanges", "a barrier by exchanges, recursive doubling", exchanges},
    Pattern{"allreduce", "MPI_Allreduce of doubles", allreduce},
    Pattern{"alltoall", "MPI_Alltoall", alltoall},
    Pattern{"allgather", "MPI_Allgather", allgather},
    Pattern{"bcast", "MPI_Bcast from rank 0", bcast},
};

} // namespace

std::span<const Pattern> collective_patterns() {
  return all;
}

} // namespace macadam::sim
