// SPDX-License-Identifier: BSD-3-Clause
// The quick families; that keys lose nothing; and programs that once went wrong.
#include "prove/explorer.h"
#include "prove/families.h"

#include <gtest/gtest.h>

namespace macadam::prove {
namespace {

void report(const Tally& tally) {
  testing::Test::RecordProperty("programs", std::to_string(tally.programs));
  testing::Test::RecordProperty("states", std::to_string(tally.states));
  testing::Test::RecordProperty("runs", std::to_string(tally.runs));
  testing::Test::RecordProperty("interleavings", std::to_string(tally.interleavings));
}

void expect_proof(Explorer& explorer, const Program& program) {
  if (const auto failure = explorer.explore(program)) FAIL() << show(*failure, explorer.types());
}

class QuickFamily : public testing::TestWithParam<const Family*> {};

TEST_P(QuickFamily, KeepsTheRulesInEveryOrder) {
  Explorer explorer;
  enumerate(*GetParam(), [&](const Program& program) {
    expect_proof(explorer, program);
    return !HasFatalFailure();
  });
  report(explorer.tally());
}

std::vector<const Family*> quick_families() {
  std::vector<const Family*> found;
  for (const Family& known : families()) {
    if (known.quick) found.push_back(&known);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Families, QuickFamily, testing::ValuesIn(quick_families()),
                         [](const auto& instance) { return std::string(instance.param->name); });

// Without keys every interleaving is run to its end. With them just as many must be accounted for:
// a key that confuses two states with different futures is seen here.
TEST(Keys, StandForExactlyTheRunsThatTheySave) {
  for (const char* const text : {
           "read / send 1 0 20, send 1 0 12 / recv 0 0 24, mprobe * *, mrecv 24",
           "write blocking / send 1 0 20, send 1 0 12 / recv 0 0 24, recv * 0 24, cancel 0",
           "read ordered / send 1 0 20, send 1 0 4 / recv 0 0 24, recv 0 0 24",
           "read either refusals=1 / send 1 0 20, send 1 0 12 / recv 0 0 24, recv * 0 24",
           "write late bursts / send 1 0 20, ssend 1 0 4 / recv 0 0 24",
           "read throttle / send 1 0 4, send 1 0 4, send 1 0 20 / recv 0 0 24",
           "write tags=1 / send 1 0 20, send 1 1 20g / recv 0 0 24g, recv 0 1 24",
           "write / send 1 0 20 / recv * 0 24, recv 2 0 24 / send 1 0 20",
           "read at_once bundles / isend 1 0 4, isend 1 0 4, isend 1 0 4, isend 1 0 4, isend 1 0 "
           "4, "
           "isend 1 0 4, recv 1 0 4 / ssend 0 0 4",
           "read blocking uncopied / isend 1 0 4, send 1 0 4g, withdraw 0 / recv 0 0 24",
           "read ordered notifications / psend 1 0 2 6, start 0, ready 0 1, mark 0 0, end 0, start "
           "0, "
           "ready 0 0 / precv 0 0 3 4, start 0, end 0, start 0",
           "read at_once scarce=1 / psend 1 0 2 4g, start 0, ready 0 0, ready 0 1 / "
           "precv 0 0 1 8g, start 0",
       }) {
    Explorer with_keys, without(false);
    const Program program = parse(text);
    expect_proof(with_keys, program);
    expect_proof(without, program);
    EXPECT_EQ(with_keys.tally().interleavings, static_cast<double>(without.tally().runs)) << text;
    EXPECT_LT(with_keys.tally().runs, without.tally().runs) << text;
  }
}

// Programs that once went wrong, each with what it was.
struct Regression {
  const char* name;
  const char* program;
};

class OnceWrong : public testing::TestWithParam<Regression> {};

TEST_P(OnceWrong, IsRightInEveryOrder) {
  Explorer explorer;
  expect_proof(explorer, parse(GetParam().program));
}

INSTANTIATE_TEST_SUITE_P(
    Regressions, OnceWrong,
    testing::Values(
        // The second cancel takes the third receive's announcement back too; when eager data
        // reached that receive before it had announced itself anew, its memory stayed registered.
        Regression{
            "EagerDataForARetractedReceive",
            "write / send 1 0 4 / recv 0 0 24, recv 0 0 24, recv 0 0 24, cancel 0, cancel 1"},
        // A send whose data were still leaving asked for its message back, which had no name.
        Regression{"WithdrawalOfAMessageThatLeaves",
                   "read blocking uncopied / isend 1 0 4, withdraw 0 / recv 0 0 24"},
        // The announcement is overtaken by the message and arrives when the sender has freed the
        // communicator: it made a channel that nobody would ever drop.
        Regression{"AnnouncementForAFreedCommunicator",
                   "read / send 1 0 4, free / recv 0 0 24, free"},
        // A receive posted during a retraction announces itself before those that move up.
        Regression{
            "ReceivePostedDuringARetraction",
            "write blocking / send 1 0 20, send 1 0 12 / recv 0 0 24, recv 0 0 24, cancel 0, "
            "recv 0 0 24"},
        // The end of the first message stands in memory only when the second one comes, and takes
        // the first one's receive.
        Regression{"PacketAfterAWriteSeenByItsLastByte",
                   "read ordered last_byte / send 1 0 20, send 1 0 4 / recv 0 0 20, recv 0 0 24"},
        // The same with a packet that comes in fragments.
        Regression{"PartAfterAWriteSeenByItsLastByte",
                   "read ordered last_byte fragments / send 1 0 20, send 1 0 4 / recv 0 0 20"},
        // The last byte changed: complete, without the error.
        Regression{"TruncationSeenByTheLastByte", "write last_byte / send 1 0 20 / recv 0 0 12"},
        // An eager message that waited for room was offered without data instead, and its receive
        // relied on an announcement that the sender had dropped.
        Regression{"OfferInPlaceOfEagerData",
                   "read throttle refusals=2 bursts / send 1 0 4, send 1 0 4, send 1 0 4 / "
                   "recv 0 0 24, recv 0 0 24"},
        // The send used the permit of an announcement, and then had no memory: its receive could
        // not be cancelled any more.
        Regression{"PermitOfASendWithoutMemory",
                   "read blocking starved=1 / send 1 0 12 / recv 0 0 24g"},
        // What was announced before a process could go on with nobody was used afterwards.
        Regression{"PermitsOfAProcessThatBrokeDown",
                   "read starved=1 / send 1 0 20g, send 1 0 4 / recv 0 0 24g"},
        Regression{"OffersOfAProcessThatBrokeDown",
                   "read blocking copies starved=1 / xsend 1 0 20 / recv * 0 24g, xsend 0 0 20"},
        // A receive that answered an offer read before its peer was connected.
        Regression{"OfferBeforeTheConnection",
                   "read blocking late copies / xsend 1 0 20 / recv * 0 24"},
        // A receiver that had no memory for a round began the next one, and got the data of the
        // round that it had refused.
        Regression{"RoundAfterARefusedOne",
                   "read starved=1 / psend 1 0 1 12, start 0, mark 0 0, end 0, start 0, mark 0 0 / "
                   "precv 0 0 1 12g, start 0, end 0, start 0"},
        // A process that could go on with nobody met another afterwards, and sent to it.
        Regression{"AMeetingAfterABreakdown", "read starved=1 / send 1 0 4 / recv 0 0 24g"},
        // The same in the poll in which it broke down.
        Regression{"AMeetingWithinABreakdown",
                   "read late bursts starved=1 / send 1 0 4 / send 0 0 4, recv 0 0 4"},
        // There was no memory to keep a message, and a receive got the one behind it.
        Regression{"MessageBehindALostOne",
                   "read bursts starved=1 / send 1 0 4, send 1 0 8 / recv 0 0 8"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(ProgramText, ComesBackAsItWas) {
  for (const Family& known : families()) {
    std::size_t number = 0;
    enumerate(known, [&](const Program& program) {
      EXPECT_EQ(parse(show(program)), program) << show(program);
      return ++number < 1000;
    });
  }
}

TEST(ProgramText, SaysWhatIsWrong) {
  const auto complaint = [](const char* text) -> std::string {
    try {
      parse(text);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint("read / send 1 0 / recv 0 0 4"), "\" send 1 0 \": 2 operands, needed 3");
  EXPECT_NE(complaint("read / send 1 0 x / recv 0 0 4").find("a number is needed"),
            std::string::npos);
  EXPECT_NE(complaint("read / send 5 0 4 / recv 0 0 4").find("rank 5 of 2"), std::string::npos);
  EXPECT_NE(complaint("fast / / ").find("a condition is needed"), std::string::npos);
  EXPECT_NE(complaint("read / jump / ").find("a step is needed"), std::string::npos);
  EXPECT_NE(complaint("read").find("two ranks or more"), std::string::npos);
}

} // namespace
} // namespace macadam::prove
