// SPDX-License-Identifier: BSD-3-Clause
// How the time of a process and its messages are added up for the report.
#include "mpi/profile.h"

#include "../support/null_transport.h"
#include "mpi/communicator.h"

#include <gtest/gtest.h>

namespace macadam::test {
namespace {

using engine::Protocol;
using engine::Step;
using mpi::Profile;
using Kind = Step::Kind;

constexpr auto collective = static_cast<std::uint64_t>(mpi::SubContext::collective);
const char* const receive = "MPI_Recv";
const char* const send = "MPI_Send";

class Clock final : public NullTransport {
 public:
  double now() const override { return time; }
  double time = 0;
};

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() { profile.start(clock); }

  void pass(double seconds) { clock.time += seconds; }
  void step(Kind kind, std::uint64_t context = 0, std::uint64_t bytes = 8,
            Protocol protocol = Protocol::eager) {
    profile.on_step(
        {.kind = kind, .protocol = protocol, .peer = 3, .context = context, .bytes = bytes});
  }
  // One call in which `inside` happens.
  template <class Inside>
  void call(const char* function, Inside&& inside) {
    Profile::Call call;
    profile.enter(call, function);
    inside();
    profile.leave(call);
  }
  [[nodiscard]] const Profile::Waits& waits(Profile::Cause cause) {
    return profile.peers().at(3).waits[static_cast<std::size_t>(cause)];
  }

  Clock clock;
  Profile profile;
};

TEST_F(ProfileTest, AddsUpTheCallsOfAFunction) {
  pass(5);
  for (int i = 0; i < 2; ++i)
    call(receive, [&] { pass(1.5); });
  pass(2);
  EXPECT_DOUBLE_EQ(profile.seconds(), 10);
  ASSERT_EQ(profile.functions().size(), 1u);
  EXPECT_EQ(profile.functions().at(receive).calls, 2u);
  EXPECT_DOUBLE_EQ(profile.functions().at(receive).seconds, 3);
}

TEST_F(ProfileTest, ACallInsideAnotherIsPartOfIt) {
  call(receive, [&] {
    pass(1);
    call(send, [&] { pass(1); });
  });
  EXPECT_EQ(profile.functions().size(), 1u);
  EXPECT_DOUBLE_EQ(profile.functions().at(receive).seconds, 2);
}

TEST_F(ProfileTest, AThreadThatLetsOthersInGoesOnWithItsCall) {
  call(receive, [&] {
    Profile::Call* const mine = profile.suspend();
    call(send, [&] { pass(1); }); // of another thread
    profile.resume(mine);
    step(Kind::matched);
  });
  EXPECT_DOUBLE_EQ(profile.functions().at(receive).seconds, 1);
  EXPECT_DOUBLE_EQ(profile.functions().at(send).seconds, 1);
  EXPECT_EQ(waits(Profile::Cause::late_sender).times, 1u);
}

TEST_F(ProfileTest, TheLastThatCameEndedTheWait) {
  call(receive, [&] {
    pass(1);
    step(Kind::released);
    pass(1);
    step(Kind::kept); // nobody waited for that
    step(Kind::matched);
    pass(1); // its data
  });
  EXPECT_EQ(waits(Profile::Cause::late_sender).times, 1u);
  EXPECT_DOUBLE_EQ(waits(Profile::Cause::late_sender).seconds, 2);
  EXPECT_EQ(waits(Profile::Cause::late_receiver).times, 0u);

  call(send, [&] {
    pass(4);
    step(Kind::released);
  });
  EXPECT_DOUBLE_EQ(waits(Profile::Cause::late_receiver).seconds, 4);
  call("MPI_Barrier", [&] {
    pass(6);
    step(Kind::matched, collective);
  });
  EXPECT_DOUBLE_EQ(waits(Profile::Cause::collective).seconds, 6);
  call(receive, [&] { step(Kind::matched); }); // at once
  EXPECT_EQ(waits(Profile::Cause::late_sender).times, 1u);
}

TEST_F(ProfileTest, AWaitIsForWhatTookLongest) {
  call("MPI_Barrier", [&] {
    pass(5);
    profile.on_word(3); // rank 3 was late, and rank 4 a little more
    pass(1);
    profile.on_word(4);
  });
  EXPECT_DOUBLE_EQ(waits(Profile::Cause::collective).seconds, 6);
  EXPECT_EQ(profile.peers().count(4), 0u);
}

TEST_F(ProfileTest, CountsMessagesByPeerProtocolAndSize) {
  step(Kind::sent, 0, 0);
  step(Kind::sent, 0, 8);
  step(Kind::sent, 0, 100'000, Protocol::send_rndv);
  step(Kind::sent, collective, 70'000, Protocol::send_rndv);
  step(Kind::sent, 0, 120'000, Protocol::send_rndv);
  step(Kind::crossed, 0, 100'000, Protocol::recv_rndv);
  step(Kind::crossed, 0, 120'000, Protocol::hybrid);
  const Profile::Peer& peer = profile.peers().at(3);
  EXPECT_EQ(peer.messages, 5u);
  EXPECT_EQ(peer.bytes, 290'008u);
  const auto sent = [&](std::size_t digits, Protocol protocol) {
    return profile.sent()[digits][static_cast<std::size_t>(protocol)];
  };
  EXPECT_EQ(sent(0, Protocol::eager), 1u);
  EXPECT_EQ(sent(4, Protocol::eager), 1u);
  EXPECT_EQ(sent(17, Protocol::send_rndv), 1u);
  EXPECT_EQ(sent(17, Protocol::recv_rndv), 1u);
  EXPECT_EQ(sent(17, Protocol::hybrid), 1u);
}

TEST_F(ProfileTest, ShortMessagesThatCouldBeOne) {
  const auto successive = [&] { return profile.peers().at(3).successive; };
  for (int i = 0; i < 5; ++i)
    call(send, [&] { step(Kind::sent); });
  EXPECT_EQ(successive(), 4u);
  EXPECT_EQ(profile.peers().at(3).successive_bytes, 32u);
  // Long ones, those of collectives, and those between which something was received.
  call(send, [&] { step(Kind::sent, 0, Profile::short_message + 1); });
  call(send, [&] { step(Kind::sent); });
  EXPECT_EQ(successive(), 4u);
  call(receive, [&] {});
  call(send, [&] { step(Kind::sent); });
  call(send, [&] { step(Kind::sent, collective); });
  call(send, [&] { step(Kind::sent); });
  EXPECT_EQ(successive(), 4u);
}

// A session's first communicator begins the next instance.
TEST_F(ProfileTest, AnotherInstanceBeginsWithinACall) {
  call(send, [&] { step(Kind::sent); });
  profile.stop();
  call(receive, [&] {
    profile.forget();
    profile.start(clock);
    pass(1);
    call(send, [&] { step(Kind::sent); });
  });
  pass(1);
  EXPECT_DOUBLE_EQ(profile.seconds(), 2);
  EXPECT_TRUE(profile.functions().empty()); // the outer call began before the clock
  EXPECT_EQ(profile.peers().at(3).messages, 1u);
  call(send, [&] { pass(1); });
  EXPECT_EQ(profile.functions().at(send).calls, 1u);
}

TEST_F(ProfileTest, TheCallInWhichMpiEndsCountsUntilTheReport) {
  call("MPI_Finalize", [&] {
    pass(2);
    profile.close();
    pass(3);
    profile.stop();
  });
  EXPECT_DOUBLE_EQ(profile.functions().at("MPI_Finalize").seconds, 2);
  EXPECT_EQ(profile.functions().at("MPI_Finalize").calls, 1u);
}

} // namespace
} // namespace macadam::test
