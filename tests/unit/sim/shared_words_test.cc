// SPDX-License-Identifier: BSD-3-Clause
// When a neighbour sees what is written to memory that both have mapped: in virtual time no earlier
// than it can be there, and not much later. By collectives of two ranks of a machine, which have no
// messages in them: data, and words that say they are there (coll/board.h).
#include "jobs.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace macadam::test {
namespace {

WorldOptions neighbors() {
  WorldOptions options = smooth(2);
  options.ranks_per_node = 2;
  return options;
}

void run(const WorldOptions& options, const std::function<void(int rank)>& program) {
  expect_finished(World(options).run([&](int rank) {
    MPI_Init(nullptr, nullptr);
    program(rank);
    MPI_Finalize();
    return 0;
  }));
}

// The writer's clock is ahead of the reader's while it copies.
TEST(SharedWords, are_not_seen_before_the_data_are_copied) {
  constexpr int bytes = 8 << 10; // in one piece
  WorldOptions options = neighbors();
  options.model.copy_mb_per_s = 1000;
  double begun = 0, seen = 0;
  run(options, [&](int rank) {
    std::vector<char> data(bytes, 'a');
    MPI_Bcast(data.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD); // makes the board
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { // the other waits by now
      sim::Rank::current()->compute(20 * sim::microsecond);
      std::fill(data.begin(), data.end(), 'b');
      begun = MPI_Wtime();
    }
    MPI_Bcast(data.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 1) seen = MPI_Wtime();
    EXPECT_EQ(data, std::vector<char>(bytes, 'b'));
  });
  const double copy = bytes * 1e-6 / options.model.copy_mb_per_s;
  EXPECT_GE(seen - begun, 2 * copy) << "to the board, and from there";
  EXPECT_LE(seen - begun, 2.2 * copy);
}

constexpr double computed_us = 20; // before each word

// From a word that is stored to the end of the wait for it, by a rank that spins by then.
double hop_ns(const WorldOptions& options) {
  constexpr int hops = 50;
  double begun = 0, ended = 0;
  run(options, [&](int rank) {
    int value = 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) begun = MPI_Wtime();
    for (int hop = 0; hop < hops; ++hop) {
      const int root = hop % 2; // the one that has waited before
      if (rank == root) {
        sim::Rank::current()->compute(static_cast<sim::Time>(computed_us * sim::microsecond));
        value = hop;
      }
      MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
      EXPECT_EQ(value, hop);
    }
    if (rank == hops % 2) ended = MPI_Wtime();
  });
  return (ended - begun) / hops * 1e9 - computed_us * 1e3;
}

TEST(SharedWords, are_seen_after_a_line_has_moved) {
  for (const double line_ns : {1000.0, 5000.0}) {
    WorldOptions options = neighbors();
    options.model.line_ns = line_ns;
    EXPECT_GE(hop_ns(options), line_ns);
  }
}

// Not at the end of a turn of the wait, which may be as long.
TEST(SharedWords, are_seen_as_soon_as_a_line_has_moved) {
  for (const double spin_ns : {5000.0, 1e6}) {
    WorldOptions options = neighbors();
    options.model.spin_ns = spin_ns;
    const double own_work = 10 * (options.model.call_ns + options.model.poll_ns);
    EXPECT_LE(hop_ns(options), options.model.line_ns + own_work) << spin_ns;
  }
}

} // namespace
} // namespace macadam::test
