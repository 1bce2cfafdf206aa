// SPDX-License-Identifier: BSD-3-Clause
// Random programs over shared memory on simulated nodes, alone or beside RDMA; ranks lose their
// cores, are killed, or may no longer copy by the kernel.
#include "torture/children.h"
#include "torture/run.h"

#include <gtest/gtest.h>

#include <memory>

namespace macadam::torture {
namespace {

Finding run_seed(std::uint64_t seed) {
  const Setup setup = random_neighbors(seed);
  const prove::Types types;
  const auto run = std::make_unique<Run>(setup, types, seed);
  return finding_of(*run);
}

TEST(TortureOfNeighbors, random_programs_keep_the_rules) {
  expect_nothing_wrong(
      run_seed, 2000, [](std::uint64_t seed) { return show(random_neighbors(seed)); },
      "torture_neighbors_test");
}

TEST(TortureOfNeighbors, the_same_seed_gives_the_same_run) {
  expect_the_same_run(run_seed, 20);
}

} // namespace
} // namespace macadam::torture
