// SPDX-License-Identifier: BSD-3-Clause
// Random programs over the RDMA transport on simulated devices that misbehave (`make torture`).
#include "torture/children.h"
#include "torture/run.h"

#include <gtest/gtest.h>

#include <memory>

namespace macadam::torture {
namespace {

Finding run_seed(std::uint64_t seed) {
  const Setup setup = random_setup(seed);
  const prove::Types types;
  const auto run = std::make_unique<Run>(setup, types, seed);
  return finding_of(*run);
}

TEST(Torture, random_programs_keep_the_rules) {
  expect_nothing_wrong(
      run_seed, 3000, [](std::uint64_t seed) { return show(random_setup(seed)); }, "torture_test");
}

TEST(Torture, the_same_seed_gives_the_same_run) {
  expect_the_same_run(run_seed, 20);
}

} // namespace
} // namespace macadam::torture
