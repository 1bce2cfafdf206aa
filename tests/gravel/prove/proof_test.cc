// SPDX-License-Identifier: BSD-3-Clause
// Every order in which calls and completions of small programs can follow each other.
#include "gravel/prove/explorer.h"
#include "gravel/prove/families.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace macadam::gravel::prove {
namespace {

std::string found_in(Program program, const Conditions& conditions) {
  program.conditions = conditions;
  return Explorer().explore(program).value_or("");
}

TEST(GravelProof, EveryOrderOfEveryProgram) {
  Explorer explorer;
  const std::vector<Program> programs = all_programs();
  for (const Program& program : programs) {
    if (const auto wrong = explorer.explore(program)) FAIL() << *wrong;
  }
  const Tally& tally = explorer.tally();
  fmt::print("{} programs, {} runs, {} states, {:.3g} interleavings\n", programs.size(), tally.runs,
             tally.states, tally.interleavings);
  EXPECT_GT(tally.interleavings, 1e6);
}

// What was not visited again because of its key is the same: without keys the runs are as many as
// the interleavings.
TEST(GravelProof, KeysStandForExactlyTheRunsThatTheySave) {
  for (const Ends ends : {Ends::at_once, Ends::later}) {
    for (Program program :
         {consumer_write(1), producer_write(), producer_read(), pipeline(), promised_writes(1)}) {
      program.conditions.ends = ends;
      Explorer with_keys, without(false);
      ASSERT_FALSE(with_keys.explore(program));
      ASSERT_FALSE(without.explore(program));
      EXPECT_EQ(with_keys.tally().interleavings, static_cast<double>(without.tally().runs));
      EXPECT_LE(with_keys.tally().runs, without.tally().runs);
    }
  }
}

// ---- That it finds something.

TEST(GravelProof, AFinThatOvertakesItsDataIsFound) {
  Conditions lies;
  lies.ends = Ends::later;
  lies.ordered = false;
  EXPECT_NE(found_in(pipeline(), lies).find("byte"), std::string::npos);
  // A put that fills its buffer tells so itself, and brings its data whatever the order.
  EXPECT_EQ(found_in(consumer_write(1), lies), "");
}

TEST(GravelProof, MemoryThatIsReadAfterItsRequestIsFound) {
  Conditions wrong;
  wrong.reads_late = true;
  EXPECT_NE(found_in(consumer_write(1), wrong).find("byte 0 is 0xee"), std::string::npos);
}

TEST(GravelProof, AWaitWithoutAnAnswerIsFound) {
  Program lonely = consumer_write(1);
  lonely.ranks[1].resize(1);
  EXPECT_NE(found_in(lonely, {}).find("waits for ever"), std::string::npos);
}

} // namespace
} // namespace macadam::gravel::prove
