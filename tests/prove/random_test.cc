// SPDX-License-Identifier: BSD-3-Clause
// Random programs in random orders. MACADAM_SEEDS=10000 runs as many (`make torture`).
#include "prove/random_program.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace macadam::prove {
namespace {

TEST(RandomPrograms, KeepTheRules) {
  const char* const wanted = std::getenv("MACADAM_SEEDS");
  const std::uint64_t seeds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 3000;
  ASSERT_GT(seeds, 0u) << "MACADAM_SEEDS=" << wanted;
  const Types types;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    ASSERT_EQ(run_seed(seed, types), "") << "again: prove --seed " << seed;
  }
}

} // namespace
} // namespace macadam::prove
