// SPDX-License-Identifier: BSD-3-Clause
// Experiments of the papers that compute and communicate, and the one of many ranks.
#include "base/error.h"
#include "sim/patterns/pattern.h"
#include "sim/rank.h"

#include <mpi.h>

#include <fmt/format.h>

#include <array>
#include <vector>

namespace macadam::sim {
namespace {

void compute_us(double us) {
  if (us > 0) Rank::current()->compute(static_cast<Time>(us * microsecond));
}

// The rank's clock, as nothing in the program can read it: it takes no time.
double now_us() {
  return seconds(Rank::current()->now()) * 1e6;
}

// Sur et al., section 5.3 and Figure 10: receives are posted, then the receiver computes while a
// burst of messages comes; how long does Waitall take? And what it costs: by how much the progress
// thread has made the computation longer, and how long the sender was at it.
void burst(Context& context) {
  const auto bursts =
      context.parameters.numbers("bursts", {50, 100, 150, 200, 250, 300, 400, 500, 750, 1000});
  // Each is to take a receive, and shorter ones would travel together.
  const auto bytes = static_cast<int>(context.parameters.number("bytes", 256));
  const auto compute = static_cast<double>(context.parameters.number("compute_us", 10000));
  for (const std::int64_t count : bursts) {
    const auto messages = static_cast<std::size_t>(count);
    std::vector<char> data(messages * static_cast<std::size_t>(bytes));
    std::vector<MPI_Request> requests(messages);
    const auto at = [&](std::size_t i) {
      return data.data() + i * static_cast<std::size_t>(bytes);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    compute_us(
        1000); // by now the connection is made, and the progress thread has no more to do for it
    MPI_Barrier(MPI_COMM_WORLD);
    if (context.rank == 1) {
      MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const double start = now_us();
      for (std::size_t i = 0; i < messages; ++i)
        MPI_Isend(at(i), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
      MPI_Waitall(static_cast<int>(messages), requests.data(), MPI_STATUSES_IGNORE);
      const double sending = now_us() - start;
      MPI_Send(&sending, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
      continue;
    }
    for (std::size_t i = 0; i < messages; ++i)
      MPI_Irecv(at(i), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    const double start = now_us();
    compute_us(compute);
    const double computed = now_us();
    MPI_Waitall(static_cast<int>(messages), requests.data(), MPI_STATUSES_IGNORE);
    const double end = now_us();
    double sending = 0;
    MPI_Recv(&sending, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    context.rows.push_back({fmt::format("{} messages", count),
                            {{"waitall_us", end - computed},
                             {"taken_us", computed - start - compute},
                             {"total_us", end - start},
                             {"sender_us", sending}}});
  }
}

// Small & Yuan, section 5.1 and Figure 7.
void pingpong(Context& context) {
  const auto sizes = context.parameters.numbers(
      "bytes", {1, 64, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144});
  const std::int64_t rounds = context.parameters.number("iterations", 20);
  for (const std::int64_t size : sizes) {
    std::vector<char> data(static_cast<std::size_t>(size));
    const auto bytes = static_cast<int>(size);
    double start = 0;
    for (std::int64_t round = -2; round < rounds; ++round) {
      if (round == 0) start = MPI_Wtime(); // connected, registered
      if (context.rank == 0) {
        MPI_Send(data.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(data.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      }
    }
    const double each = (MPI_Wtime() - start) / static_cast<double>(rounds);
    if (context.rank == 0)
      context.rows.push_back({fmt::format("{} bytes", size), {{"round_trip_us", each * 1e6}}});
  }
}

// Small & Yuan, section 5.2 and Figure 8: computation before, between and behind the calls of one
// message, on both sides. comp=c1:...:c6 in units of 18 us, as in the paper.
void progress(Context& context) {
  const auto comp = context.parameters.numbers("comp", {20, 20, 20, 0, 0, 0});
  if (comp.size() != 6)
    base::fail(MPI_ERR_ARG, "parameter comp: found {} numbers, needed 6, for example 0:0:60:10:0:0",
               comp.size());
  const auto sizes = context.parameters.numbers("bytes", {102400});
  const auto unit = static_cast<double>(context.parameters.number("unit_us", 18));
  const std::int64_t rounds = context.parameters.number("iterations", 20);
  const auto part = [&](std::size_t i) { compute_us(unit * static_cast<double>(comp[i])); };
  for (const std::int64_t size : sizes) {
    std::vector<char> data(static_cast<std::size_t>(size));
    const auto bytes = static_cast<int>(size);
    double start = 0;
    for (std::int64_t round = -2; round < rounds; ++round) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (round == 0) start = MPI_Wtime();
      MPI_Request request;
      if (context.rank == 0) {
        part(0);
        MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        part(1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        part(2);
      } else {
        part(3);
        MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        part(4);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        part(5);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double each = (MPI_Wtime() - start) / static_cast<double>(rounds);
    if (context.rank == 0)
      context.rows.push_back({fmt::format("{} bytes", size), {{"iteration_us", each * 1e6}}});
  }
}

// Where LU spends its time (Sur et al., section 5.4): planes of a grid of points one after the
// other, from one corner of the grid of ranks to the other and back; for each a rank waits for two
// neighbours, computes, and sends to the two others.
void wavefront(Context& context) {
  const auto bytes = static_cast<int>(context.parameters.number("bytes", 200));
  const std::int64_t planes = context.parameters.number("planes", 30);
  const auto compute = static_cast<double>(context.parameters.number("compute_us", 0));
  const std::int64_t rounds = context.parameters.number("iterations", 20);
  int width = 1;
  for (int side = 1; side * side <= context.size; ++side) {
    if (context.size % side == 0) width = side;
  }
  const int x = context.rank % width, y = context.rank / width;
  const auto rank_at = [&](int i, int j) {
    const bool inside = i >= 0 && i < width && j >= 0 && j < context.size / width;
    return inside ? i + width * j : MPI_PROC_NULL;
  };
  std::vector<char> data(static_cast<std::size_t>(bytes));
  const auto sweep = [&](int step) {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for (const int from : {rank_at(x - step, y), rank_at(x, y - step)})
        MPI_Recv(data.data(), bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      compute_us(compute);
      for (const int to : {rank_at(x + step, y), rank_at(x, y + step)})
        MPI_Send(data.data(), bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    }
  };
  double start = 0;
  for (std::int64_t round = -2; round < rounds; ++round) {
    if (round == 0) {
      MPI_Barrier(MPI_COMM_WORLD); // connected, also for the barrier behind all
      start = MPI_Wtime();
    }
    sweep(1);
    sweep(-1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double each = (MPI_Wtime() - start) / static_cast<double>(2 * rounds * planes);
  if (context.rank == 0)
    context.rows.push_back({fmt::format("{} bytes", bytes), {{"plane_us", each * 1e6}}});
}

// One halo exchange on a square grid that wraps around, then one sum over all ranks.
void halo(Context& context) {
  const auto bytes = static_cast<int>(context.parameters.number("bytes", 1024));
  std::array grid{1, context.size};
  for (int side = 1; side * side <= context.size; ++side) {
    if (context.size % side == 0) grid = {side, context.size / side};
  }
  const int x = context.rank % grid[0], y = context.rank / grid[0];
  const auto rank_at = [&](int i, int j) {
    return (i + grid[0]) % grid[0] + grid[0] * ((j + grid[1]) % grid[1]);
  };
  const std::array neighbours{rank_at(x + 1, y), rank_at(x - 1, y), rank_at(x, y + 1),
                              rank_at(x, y - 1)};
  const auto one = static_cast<std::size_t>(bytes);
  std::vector<char> out(one), in(4 * one);
  std::array<MPI_Request, 8> requests;
  const double start = MPI_Wtime();
  for (std::size_t i = 0; i < 4; ++i)
    MPI_Irecv(in.data() + i * one, bytes, MPI_BYTE, neighbours[i], static_cast<int>(i ^ 1),
              MPI_COMM_WORLD, &requests[i]);
  for (std::size_t i = 0; i < 4; ++i)
    MPI_Isend(out.data(), bytes, MPI_BYTE, neighbours[i], static_cast<int>(i), MPI_COMM_WORLD,
              &requests[4 + i]);
  MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
  const double between = MPI_Wtime();
  double in_sum = 1, out_sum = 0;
  MPI_Allreduce(&in_sum, &out_sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (out_sum != context.size)
    base::fail(MPI_ERR_INTERN, "the sum over {} ranks is {}", context.size, out_sum);
  if (context.rank == 0) {
    context.rows.push_back({"halo exchange", {{"time_us", (between - start) * 1e6}}});
    context.rows.push_back({"allreduce", {{"time_us", (MPI_Wtime() - between) * 1e6}}});
  }
}

constexpr std::array all = {
    Pattern{"burst", "Sur et al., Figure 10: Waitall after a burst (bursts, bytes, compute_us)",
            burst, 2},
    Pattern{"pingpong", "Small & Yuan, Figure 7 (bytes, iterations)", pingpong, 2},
    Pattern{"progress",
            "Small & Yuan, Figures 9 and 10 (comp=c1:..:c6, bytes, iterations, unit_us)", progress,
            2},
    Pattern{"wavefront", "LU's sweeps over a grid of ranks (bytes, planes, compute_us, iterations)",
            wavefront},
    Pattern{"halo", "one halo exchange and one allreduce", halo},
};

} // namespace

std::span<const Pattern> experiment_patterns() {
  return all;
}

} // namespace macadam::sim
