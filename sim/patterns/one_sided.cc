// SPDX-License-Identifier: BSD-3-Clause
// The experiments of Jiang et al. (section "Experimental Results"), one-sided, and two-sided where
// the paper compares. By RDMA, or by messages with MACADAM_PROTOCOLS=sender.
#include "base/error.h"
#include "sim/patterns/pattern.h"
#include "sim/rank.h"

#include <mpi.h>

#include <fmt/format.h>

#include <array>
#include <vector>

namespace macadam::sim {
namespace {

constexpr int warm_up = 2; // rounds: connected, registered

// A window of every rank, and the groups of the experiments.
class Windows {
 public:
  Windows(const Context& context, std::int64_t bytes) : memory_(static_cast<std::size_t>(bytes)) {
    MPI_Win_create(memory_.data(), bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int target = 0;
    MPI_Group_incl(world, 1, &target, &rank_0);
    MPI_Group_excl(world, 1, &target, &others);
    peer = context.rank == 0 ? others : rank_0;
    MPI_Group_free(&world);
  }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  ~Windows() {
    MPI_Group_free(&rank_0);
    MPI_Group_free(&others);
    MPI_Win_free(&win);
  }
  MPI_Win win = MPI_WIN_NULL;
  MPI_Group rank_0 = MPI_GROUP_NULL, others = MPI_GROUP_NULL;
  MPI_Group peer = MPI_GROUP_NULL; // of two ranks, the other one

 private:
  std::vector<char> memory_;
};

// Microseconds for one round, from the end of the warm-up on; `everywhere`: to the end of the last
// round on all ranks.
template <class Round>
double us_per_round(std::int64_t rounds, Round&& round, bool everywhere = false) {
  double start = 0;
  for (std::int64_t i = -warm_up; i < rounds; ++i) {
    if (i == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      start = MPI_Wtime();
    }
    round();
  }
  if (everywhere) MPI_Barrier(MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / static_cast<double>(rounds) * 1e6;
}

void put_epoch(const Windows& windows, int to, const char* data, int bytes) {
  MPI_Win_start(windows.peer, 0, windows.win);
  MPI_Put(data, bytes, MPI_BYTE, to, 0, bytes, MPI_BYTE, windows.win);
  MPI_Win_complete(windows.win);
}
void exposure(const Windows& windows) {
  MPI_Win_post(windows.peer, 0, windows.win);
  MPI_Win_wait(windows.win);
}

// Ping-pong and bi-directional latency.
void latency(Context& context) {
  const auto sizes =
      context.parameters.numbers("bytes", {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144});
  const std::int64_t rounds = context.parameters.number("iterations", 20);
  const int peer = 1 - context.rank;
  for (const std::int64_t size : sizes) {
    const auto bytes = static_cast<int>(size);
    const Windows windows(context, size);
    std::vector<char> data(static_cast<std::size_t>(size)), in(data);
    const double one_sided = us_per_round(rounds, [&] {
      if (context.rank == 0) put_epoch(windows, peer, data.data(), bytes);
      exposure(windows);
      if (context.rank != 0) put_epoch(windows, peer, data.data(), bytes);
    });
    const double both_ways = us_per_round(rounds, [&] {
      MPI_Win_post(windows.peer, 0, windows.win);
      put_epoch(windows, peer, data.data(), bytes);
      MPI_Win_wait(windows.win);
    });
    const double two_sided = us_per_round(rounds, [&] {
      if (context.rank == 0) MPI_Send(data.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
      MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (context.rank != 0) MPI_Send(data.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    });
    const double exchange = us_per_round(rounds, [&] {
      MPI_Sendrecv(data.data(), bytes, MPI_BYTE, peer, 0, in.data(), bytes, MPI_BYTE, peer, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    if (context.rank != 0) continue;
    context.rows.push_back({fmt::format("{} bytes", size),
                            {{"pingpong_us", one_sided / 2},
                             {"two_sided_pingpong_us", two_sided / 2},
                             {"bidirectional_us", both_ways},
                             {"two_sided_bidirectional_us", exchange}}});
  }
}

// Windows of 64 puts or gets in an epoch.
void bandwidth(Context& context) {
  constexpr std::int64_t window = 64;
  const auto sizes =
      context.parameters.numbers("bytes", {64, 256, 1024, 4096, 16384, 65536, 262144});
  const std::int64_t rounds = context.parameters.number("iterations", 20);
  for (const std::int64_t size : sizes) {
    const auto bytes = static_cast<int>(size);
    const Windows windows(context, size * window);
    std::vector<char> data(static_cast<std::size_t>(size * window));
    const auto each = [&](bool puts) {
      return us_per_round(
          rounds,
          [&] {
            if (context.rank == 1) return exposure(windows);
            MPI_Win_start(windows.peer, 0, windows.win);
            for (std::int64_t i = 0; i < window; ++i) {
              char* const here = data.data() + i * size;
              if (puts)
                MPI_Put(here, bytes, MPI_BYTE, 1, i * size, bytes, MPI_BYTE, windows.win);
              else
                MPI_Get(here, bytes, MPI_BYTE, 1, i * size, bytes, MPI_BYTE, windows.win);
            }
            MPI_Win_complete(windows.win);
          },
          true);
    };
    const double total = static_cast<double>(size * window);
    const double put = each(true), get = each(false);
    if (context.rank == 0)
      context.rows.push_back({fmt::format("{} bytes", size),
                              {{"put_mb_per_s", total / put}, {"get_mb_per_s", total / get}}});
  }
}

// Post, start, complete, wait with nothing between.
void synchronization(Context& context) {
  const Windows windows(context, 64);
  const std::int64_t rounds = context.parameters.number("iterations", 50);
  const double us = us_per_round(rounds, [&] {
    MPI_Win_post(windows.peer, 0, windows.win);
    MPI_Win_start(windows.peer, 0, windows.win);
    MPI_Win_complete(windows.win);
    MPI_Win_wait(windows.win);
  });
  if (context.rank == 0) context.rows.push_back({"empty epochs", {{"epoch_us", us}}});
}

// The target computes for compute_us between its post and its wait, the origin between its puts and
// its complete, for each of compute_us: how long the origin's epoch takes.
void busy(Context& context) {
  const auto times = context.parameters.numbers("compute_us", {0, 50, 100, 200, 400, 800});
  const auto size = context.parameters.number("bytes", 65536);
  const std::int64_t rounds = context.parameters.number("iterations", 10);
  const auto bytes = static_cast<int>(size);
  const Windows windows(context, size);
  std::vector<char> data(static_cast<std::size_t>(size));
  const auto compute = [](std::int64_t us) { Rank::current()->compute(us * microsecond); };
  for (const std::int64_t us : times) {
    double in_epoch = 0;
    for (std::int64_t i = -warm_up; i < rounds; ++i) { // skew: the target computes
      MPI_Barrier(MPI_COMM_WORLD);
      if (context.rank == 1) {
        MPI_Win_post(windows.peer, 0, windows.win);
        compute(us);
        MPI_Win_wait(windows.win);
        continue;
      }
      const double start = MPI_Wtime();
      MPI_Win_start(windows.peer, 0, windows.win);
      MPI_Get(data.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, windows.win);
      MPI_Win_complete(windows.win);
      if (i >= 0) in_epoch += MPI_Wtime() - start;
    }
    const double overlapped = us_per_round(rounds, [&] { // overlap: the origin computes
      if (context.rank == 1) return exposure(windows);
      MPI_Win_start(windows.peer, 0, windows.win);
      MPI_Put(data.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, windows.win);
      compute(us);
      MPI_Win_complete(windows.win);
    });
    if (context.rank == 0)
      context.rows.push_back({fmt::format("{} us", us),
                              {{"skew_us", in_epoch / static_cast<double>(rounds) * 1e6},
                               {"overlap_us", overlapped}}});
  }
}

// All other ranks put to rank 0 at once.
void origins(Context& context) {
  const auto size = context.parameters.number("bytes", 65536);
  const std::int64_t rounds = context.parameters.number("iterations", 10);
  constexpr std::int64_t window = 16;
  const auto bytes = static_cast<int>(size);
  const Windows windows(context, size * context.size);
  std::vector<char> data(static_cast<std::size_t>(size));
  const double us = us_per_round(rounds, [&] {
    if (context.rank == 0) return exposure(windows);
    MPI_Win_start(windows.peer, 0, windows.win);
    for (std::int64_t i = 0; i < window; ++i)
      MPI_Put(data.data(), bytes, MPI_BYTE, 0, size * context.rank, bytes, MPI_BYTE, windows.win);
    MPI_Win_complete(windows.win);
  });
  if (context.rank == 0) {
    const auto total = static_cast<double>(size * window * (context.size - 1));
    context.rows.push_back(
        {fmt::format("{} origins", context.size - 1), {{"put_mb_per_s", total / us}}});
  }
}

constexpr std::array all = {
    Pattern{"rma-latency", "Jiang et al.: ping-pong, bi-directional (bytes, iterations)", latency,
            2},
    Pattern{"rma-bandwidth", "Jiang et al.: windows of puts, of gets (bytes, iterations)",
            bandwidth, 2},
    Pattern{"rma-sync", "Jiang et al.: empty epochs (iterations)", synchronization, 2},
    Pattern{"rma-busy", "Jiang et al.: overlap, process skew (compute_us, bytes, iterations)", busy,
            2},
    Pattern{"rma-origins", "Jiang et al.: several origins, one target (bytes, iterations)",
            origins},
};

} // namespace

std::span<const Pattern> one_sided_patterns() {
  return all;
}

} // namespace macadam::sim
