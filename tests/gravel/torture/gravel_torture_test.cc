// SPDX-License-Identifier: BSD-3-Clause
// Random programs of Gravel over the RDMA transport on simulated devices that misbehave, and what
// they have found.
#include "gravel/driver.h"
#include "gravel/torture/run.h"
#include "torture/children.h"
#include "unit/support/null_transport.h"

#include <gtest/gtest.h>

#include <memory>

namespace macadam::gravel::torture {
namespace {

using macadam::torture::Finding;

using Seen = Run::Seen; // GoogleTest's tests have a Run and a Setup of their own

Finding run_setup(const Setup& setup, std::uint64_t seed, Seen& seen) {
  const auto run = std::make_unique<Run>(setup, seed);
  Finding found = macadam::torture::finding_of(*run);
  seen = run->seen();
  return found;
}

Finding run_seed(std::uint64_t seed) {
  Seen seen;
  return run_setup(random_setup(seed), seed, seen);
}

Finding run_seed_without_promises(std::uint64_t seed) {
  Seen seen;
  return run_setup(random_setup(seed, false), seed, seen);
}

TEST(GravelTorture, RandomProgramsKeepTheRules) {
  macadam::torture::expect_nothing_wrong(
      run_seed, 400, [](std::uint64_t seed) { return show(random_setup(seed)); },
      "gravel_torture_test");
}

TEST(GravelTorture, TheProgramsMeetWhatTheyAreFor) {
  Seen all;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Seen seen;
    ASSERT_EQ(run_setup(random_setup(seed), seed, seen).wrong, "") << "seed " << seed;
    all.finished += seen.finished;
    all.failures += seen.failures;
    all.refused += seen.refused;
    all.ledger_full += seen.ledger_full;
    all.copied += seen.copied;
  }
  EXPECT_GT(all.finished, 4000u);
  EXPECT_GT(all.failures, 200u);
  EXPECT_GT(all.refused, 10u);
  EXPECT_GT(all.ledger_full, 400u);
  EXPECT_GT(all.copied, 500u);
}

TEST(GravelTorture, TheSameSeedGivesTheSameRun) {
  macadam::torture::expect_the_same_run(run_seed, 10);
}

// ---- Found: named, so that they stay found whatever the seeds become.

using Kind = Exchange::Kind;
using What = Step::What;

// Rank 1 ends while its last credits are under way to one that has left.
TEST(GravelTorture, CreditsForOneWhoHasLeftAreNobodys) {
  EXPECT_EQ(run_seed_without_promises(735).wrong, "");
}

// The packet that says that a connection was accepted is lost, and its sender writes to the ring
// there, has all that it waited for, and ends.
TEST(GravelTorture, AWriteToARingSaysThatTheConnectionWasAccepted) {
  EXPECT_EQ(run_seed_without_promises(2606).wrong, "");
}

// Rank 0 waits for data of rank 1, which has taken up rank 0's announcement and dies.
Setup a_death(base::ReceiveMode mode) {
  Setup setup;
  setup.settings.rdma_receive = mode;
  setup.exchanges = {{Kind::consumer_write, 1, 0, 0, 100, 0, 0, {{0, 100, false}}}};
  setup.ranks = {{{What::post_receive, 0}, {What::wait_posted, 0}}, {{What::take_receive, 0}}};
  setup.memory_bytes = {200, 200};
  setup.mortal = 1;
  setup.dies_at = 1;
  return setup;
}

// The look after a peer needs none of the receives that the peer had for us.
TEST(GravelTorture, WhoDiedWithoutGivingBackCreditsIsMissed) {
  auto setup = a_death(base::ReceiveMode::credit);
  setup.settings.rdma_window = 2;
  setup.slots = 16;
  for (int e = 1; e < 6; ++e) { // more announcements than there are credits
    setup.exchanges.push_back({Kind::consumer_write, 1, 0, e, 100, 0, 0, {{0, 100, false}}});
    setup.ranks[0].insert(setup.ranks[0].begin(), {What::post_receive, e});
    setup.ranks[0].push_back({What::wait_posted, e});
  }
  Seen seen;
  const Finding found = run_setup(setup, 1, seen);
  EXPECT_EQ(found.wrong, "");
  EXPECT_EQ(seen.failures, 6u);
  EXPECT_LT(found.virtual_s, 30);
}

// Rank 0 has its data and ends, long before rank 1, which has posted a FIN to it and no reason to
// know whether it was taken.
TEST(GravelTorture, WhoEndsAsksNothingOfThoseWhoEndedBefore) {
  for (const auto mode : {base::ReceiveMode::shared, base::ReceiveMode::credit,
                          base::ReceiveMode::ring, base::ReceiveMode::mixed}) {
    auto setup = a_death(mode);
    setup.mortal = -1;
    setup.exchanges.push_back({Kind::consumer_write, 1, 1, 1, 10, 110, 130, {{0, 10, false}}});
    setup.ranks[1].insert(setup.ranks[1].end(), {{What::move, 0},
                                                 {What::fin, 0},
                                                 {What::wait_fin, 0},
                                                 {What::post_receive, 1},
                                                 {What::take_receive, 1},
                                                 {What::move, 1},
                                                 {What::fin, 1},
                                                 {What::wait_fin, 1},
                                                 {What::wait_posted, 1}});
    setup.faults.slow_rank = 1;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Seen seen;
      ASSERT_EQ(run_setup(setup, seed, seen).wrong, "") << "seed " << seed;
      EXPECT_EQ(seen.given_up, 0u) << "seed " << seed;
    }
  }
}

// A producer may have put all and be gone before the consumer posts what it has promised; and what
// was promised and not posted stands in nobody's way.
Setup an_early_producer() {
  Setup setup;
  setup.copies = true;
  setup.slots = 1;
  setup.memory_bytes = {1000, 1000};
  setup.ranks.resize(2);
  setup.ranks[0] = {{What::promise, 0, 3}, {What::post_receive, 3}, {What::wait_posted, 3}};
  for (int e = 0; e < 3; ++e) { // the third is not posted
    setup.exchanges.push_back({Kind::consumer_write,
                               1,
                               0,
                               1,
                               100,
                               110u * static_cast<unsigned>(e),
                               110u * static_cast<unsigned>(e),
                               {{0, 100, false}}});
    for (const What what : {What::take_receive, What::move, What::fin, What::wait_fin})
      setup.ranks[1].push_back({what, e});
  }
  // The last that the producer does is another write, by which the consumer knows.
  setup.exchanges.push_back({Kind::consumer_write, 1, 0, 2, 100, 400, 400, {{0, 100, false}}});
  for (const What what : {What::take_receive, What::move, What::fin, What::wait_fin})
    setup.ranks[1].push_back({what, 3});
  for (int e = 0; e < 2; ++e) {
    setup.ranks[0].push_back({What::post_receive, e});
    setup.ranks[0].push_back({What::wait_posted, e});
  }
  setup.faults.slow_rank = 0;
  return setup;
}

TEST(GravelTorture, DataOfPromisedBuffersOutliveTheirProducer) {
  const auto setup = an_early_producer();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Seen seen;
    ASSERT_EQ(run_setup(setup, seed, seen).wrong, "") << "seed " << seed;
    EXPECT_EQ(seen.finished, 3u);
    EXPECT_EQ(seen.failures, 0u);
    EXPECT_EQ(seen.copied, 2u);
  }
}

// With ledgers of two entries: of what rank 0 announces to itself it takes the second before the
// first, and between the two was a promise.
TEST(GravelTorture, APromiseTakesNoRoomOfWhatIsAnnounced) {
  EXPECT_EQ(run_seed(3613).wrong, "");
}

// Whoever waits for anybody finds that all are gone, also those that it has never met.
Setup a_death_of_a_stranger() {
  Setup setup;
  setup.exchanges = {{Kind::producer_write, 1, 0, 0, 100, 0, 0, {{0, 100, false}}}};
  setup.ranks = {{{What::take_any, 0}}, {{What::post_request, 0}}};
  setup.memory_bytes = {200, 200};
  setup.mortal = 1;
  setup.dies_at = 0;
  return setup;
}

TEST(GravelTorture, WhoWaitsForAnybodyMissesStrangersToo) {
  const auto setup = a_death_of_a_stranger();
  Seen seen;
  EXPECT_EQ(run_setup(setup, 1, seen).wrong, "");
  EXPECT_EQ(seen.failures, 1u);
}

// Who waits is never long without something that comes, as from others who look after it.
class Busy final : public test::NullTransport {
 public:
  const engine::Limits& limits() const noexcept override { return limits_; }
  bool poll(engine::Sink&) noexcept override {
    now_ += 0.02;
    return ++polls_ % 20 == 0;
  }
  double now() const override { return now_; }
  Posted put(engine::Link&, const void*, RemoteMemory, std::size_t,
             std::uint64_t) noexcept override {
    ++looks;
    return Posted::done;
  }
  Posted put_notified(engine::Link&, const void*, RemoteMemory, std::size_t, std::uint64_t,
                      std::uint32_t) noexcept override {
    return Posted::done;
  }
  int looks = 0;

 private:
  const engine::Limits limits_{.name = "busy", .notified_put = 64, .orders_puts = true};
  double now_ = 0;
  int polls_ = 0;
};

struct Two final : boot::Job {
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  [[nodiscard]] boot::Secret secret() const override { return {}; }
  [[nodiscard]] int cores() const override { return 2; }
  void publish(std::span<const std::byte>) override {}
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int) const override { return {}; }
};

// How often the driver looks after its peer in 20 s of what is done with it.
template <class Wait>
int looks_in(Wait&& wait) {
  const Two job;
  Busy network;
  Driver driver(
      engine::Networks(network), job, [](gravel::Rank) { return RemoteMemory(); }, 2);
  driver.core().post_send_request(1, 8, 0);
  wait(driver);
  return network.looks;
}

TEST(GravelTorture, WhoWaitsLooksAfterItsPeerHoweverMuchComes) {
  EXPECT_GT(looks_in([](Driver& driver) {
              int polls = 0;
              driver.wait(1, [&] { return ++polls == 1000; });
            }),
            100);
}

TEST(GravelTorture, WhoTestsLooksAfterItsPeerNowAndThen) {
  EXPECT_GT(looks_in([](Driver& driver) {
              for (int tests = 0; tests < 1000; ++tests)
                driver.look(1);
            }),
            20);
}

} // namespace
} // namespace macadam::gravel::torture
