// SPDX-License-Identifier: BSD-3-Clause
// A proof that finds nothing must be able to find something: five bugs, each a rule left out, are
// planted in an engine built for this test, and each must be found.
#include "engine/plant.h"
#include "fmt/format.h"
#include "prove/explorer.h"
#include "prove/families.h"
#include "prove/random_program.h"

#include <gtest/gtest.h>

namespace macadam::prove {
namespace {

using engine::Plant;

// The first failing program of a family, which gives short ones first.
std::optional<Failure> find(const char* name, Explorer& explorer) {
  std::optional<Failure> failure;
  enumerate(family(name), [&](const Program& program) {
    failure = explorer.explore(program);
    return !failure.has_value();
  });
  return failure;
}

class Planted : public testing::Test {
 protected:
  void TearDown() override { engine::plant = Plant::none; }

  void expect_found(Plant bug, const char* name) {
    Explorer explorer;
    engine::plant = bug;
    const auto failure = find(name, explorer);
    ASSERT_TRUE(failure) << "not found in " << explorer.tally().programs << " programs";
    fmt::print("found in program {} after {} runs: {}", explorer.tally().programs,
               explorer.tally().runs, show(*failure, explorer.types()));
    // The schedule repeats it, and it is the plant that does it.
    EXPECT_EQ(replay(failure->program, failure->schedule, explorer.types()).wrong, failure->what);
    engine::plant = Plant::none;
    EXPECT_EQ(replay(failure->program, failure->schedule, explorer.types()).wrong, "");
  }
};

TEST_F(Planted, AnnouncingWildcardIsFound) {
  expect_found(Plant::announcing_wildcard, "pairs");
}

TEST_F(Planted, MatchedProbeThatDoesNotCountIsFound) {
  expect_found(Plant::probe_without_ordinal, "probes");
}

TEST_F(Planted, StaleReadyIsFound) {
  expect_found(Plant::stale_ready, "pairs");
}

TEST_F(Planted, RevokedPermitThatIsUsedIsFound) {
  expect_found(Plant::revoked_permit, "retractions");
}

TEST_F(Planted, PartitionThatIsSentTooEarlyIsFound) {
  expect_found(Plant::partition_too_early, "partitions");
}

// Random programs are no weaker: each bug shows within some hundred of them.
TEST_F(Planted, EachIsFoundByRandomPrograms) {
  const Types types;
  for (const Plant bug : {Plant::announcing_wildcard, Plant::probe_without_ordinal,
                          Plant::stale_ready, Plant::revoked_permit}) {
    engine::plant = bug;
    std::uint64_t seed = 1;
    while (seed < 1000 && run_seed(seed, types).empty())
      ++seed;
    EXPECT_LT(seed, 1000u) << "plant " << static_cast<int>(bug);
    fmt::print("plant {} found with seed {}: {}\n", static_cast<int>(bug), seed,
               run_seed(seed, types));
    engine::plant = Plant::none;
    EXPECT_EQ(run_seed(seed, types), "");
  }
}

} // namespace
} // namespace macadam::prove
