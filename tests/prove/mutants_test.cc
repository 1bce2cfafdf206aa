// SPDX-License-Identifier: BSD-3-Clause
// A proof that finds nothing must be able to find something: bugs, each a rule left out, are built
// into an engine for this test, and each must be found.
#include "engine/mutant.h"
#include "fmt/format.h"
#include "prove/explorer.h"
#include "prove/families.h"
#include "prove/random_program.h"

#include <gtest/gtest.h>

namespace macadam::prove {
namespace {

using engine::Mutant;

// The first failing program of a family, which gives short ones first.
std::optional<Failure> find(const char* name, Explorer& explorer) {
  std::optional<Failure> failure;
  enumerate(family(name), [&](const Program& program) {
    failure = explorer.explore(program);
    return !failure.has_value();
  });
  return failure;
}

class Mutants : public testing::Test {
 protected:
  void TearDown() override { engine::mutant = Mutant::none; }

  void expect_found(Mutant bug, const char* name) {
    Explorer explorer;
    engine::mutant = bug;
    const auto failure = find(name, explorer);
    ASSERT_TRUE(failure) << "not found in " << explorer.tally().programs << " programs";
    fmt::print("found in program {} after {} runs: {}", explorer.tally().programs,
               explorer.tally().runs, show(*failure, explorer.types()));
    // The schedule repeats it, and it is the mutant that does it.
    EXPECT_EQ(replay(failure->program, failure->schedule, explorer.types()).wrong, failure->what);
    engine::mutant = Mutant::none;
    EXPECT_EQ(replay(failure->program, failure->schedule, explorer.types()).wrong, "");
  }
};

TEST_F(Mutants, AnnouncingWildcardIsFound) {
  expect_found(Mutant::announcing_wildcard, "pairs");
}

TEST_F(Mutants, MatchedProbeThatDoesNotCountIsFound) {
  expect_found(Mutant::probe_without_ordinal, "probes");
}

TEST_F(Mutants, StaleReadyIsFound) {
  expect_found(Mutant::stale_ready, "pairs");
}

TEST_F(Mutants, RevokedPermitThatIsUsedIsFound) {
  expect_found(Mutant::revoked_permit, "retractions");
}

TEST_F(Mutants, SendThatEndsBeforeItsDataHaveLeftIsFound) {
  expect_found(Mutant::uncopied_is_done, "uncopied");
}

TEST_F(Mutants, CopyOfWhatIsReadIsFound) {
  expect_found(Mutant::copied_while_read, "leaving");
}

TEST_F(Mutants, PartitionThatIsSentTooEarlyIsFound) {
  expect_found(Mutant::partition_too_early, "partitions");
}

// Random programs are no weaker: each bug shows within some hundred of them.
TEST_F(Mutants, EachIsFoundByRandomPrograms) {
  const Types types;
  for (const Mutant bug : {Mutant::announcing_wildcard, Mutant::probe_without_ordinal,
                           Mutant::stale_ready, Mutant::revoked_permit, Mutant::uncopied_is_done}) {
    engine::mutant = bug;
    std::uint64_t seed = 1;
    while (seed < 1000 && run_seed(seed, types).empty())
      ++seed;
    EXPECT_LT(seed, 1000u) << "mutant " << static_cast<int>(bug);
    fmt::print("mutant {} found with seed {}: {}\n", static_cast<int>(bug), seed,
               run_seed(seed, types));
    engine::mutant = Mutant::none;
    EXPECT_EQ(run_seed(seed, types), "");
  }
}

} // namespace
} // namespace macadam::prove
