// SPDX-License-Identifier: BSD-3-Clause
// What a process keeps for a rank that it knows of and has never talked to: counted by the C
// library's allocator around the calls of one process, in jobs whose other ranks do nothing.
#include "sim/world.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

using sim::World;
using sim::WorldOptions;

constexpr double budget = 256; // bytes (design: memory follows use)

std::size_t allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// Bytes that rank 0 has more after `calls` than before.
std::size_t bytes_after(int ranks, void (*calls)()) {
  std::size_t bytes = 0;
  WorldOptions options;
  options.ranks = ranks;
  options.jobs = 2;
  options.settings.emplace();
  World world(options);
  const sim::Outcome outcome = world.run([&](int rank) {
    if (rank != 0 || sim::Rank::current()->job() != 0) return 0;
    sim::Rank::current()->compute(1000 * 1000 * sim::microsecond); // the others have ended
    const std::size_t before = allocated();
    calls();
    bytes = allocated() - before;
    return 0;
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  return bytes;
}

// That grow with the job, for each of its ranks.
void expect_within_budget(void (*calls)()) {
  if (allocated() == 0) GTEST_SKIP() << "a sanitizer's allocator counts nothing";
  bytes_after(1, calls); // what is made once in a program
  const std::size_t alone = bytes_after(1, calls);
  ASSERT_GT(alone, 10'000u) << "nothing is counted";
  for (const int ranks : {64, 4096}) {
    const auto more = static_cast<double>(bytes_after(ranks, calls)) - static_cast<double>(alone);
    EXPECT_LE(more / (ranks - 1), budget) << ranks << " ranks, " << more << " bytes more";
    testing::Test::RecordProperty(std::to_string(ranks) + "_ranks_bytes_each",
                                  std::to_string(more / (ranks - 1)));
  }
}

TEST(IdleRanks, cost_a_process_little) {
  expect_within_budget([] { MPI_Init(nullptr, nullptr); });
}

// In an order that nobody can compute.
TEST(IdleRanks, cost_little_when_they_are_in_groups) {
  expect_within_budget([] {
    MPI_Init(nullptr, nullptr);
    MPI_Group all = MPI_GROUP_NULL, pairs = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int size = 0;
    MPI_Group_size(all, &size);
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.push_back(size == 1 ? 0 : rank ^ 1);
    MPI_Group_incl(all, size, ranks.data(), &pairs);
  });
}

TEST(IdleRanks, cost_little_when_they_are_of_another_job) {
  expect_within_budget([] {
    MPI_Init(nullptr, nullptr);
    sim::Rank::current()->meet(1);
  });
}

} // namespace
} // namespace macadam::test
