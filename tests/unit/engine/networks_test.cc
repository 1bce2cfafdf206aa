// SPDX-License-Identifier: BSD-3-Clause
// One engine on two networks: each peer's messages, memory and thresholds are of the network that
// reaches it; receives from any source take messages of both.
#include "one_engine.h"
#include "support/loopback.h"
#include "support/null_transport.h"

#include <random>

namespace macadam::test {
namespace {

using engine::Engine;
using engine::Networks;

constexpr Rank node_ranks = 2;
constexpr Rank job_ranks = 4;

bool same_node(Rank a, Rank b) {
  return a / node_ranks == b / node_ranks;
}

LoopbackOptions near_options(LoopbackOptions options) {
  options.limits = {.name = "near", .message = 8192, .eager = 4096, .hybrid = 16384};
  options.reaches = same_node;
  return options;
}

LoopbackOptions far_options(LoopbackOptions options) {
  options.limits = {.name = "far", .message = 8192, .eager = 1024, .hybrid = 4096};
  options.reaches = [](Rank a, Rank b) { return !same_node(a, b); };
  return options;
}

// Two nodes of two ranks: within a node `near`, between them `far`.
struct TwoNodes {
  explicit TwoNodes(const LoopbackOptions& options = {}, const base::Settings& wanted = {})
      : settings(wanted), near(job_ranks, near_options(options)),
        far(job_ranks, far_options(options)) {
    for (int rank = 0; rank < int{job_ranks}; ++rank) {
      engines.push_back(std::make_unique<Engine>(
          Networks({&near.transport(rank), &far.transport(rank)}), job_ranks, settings));
    }
  }
  Engine& operator[](Rank rank) { return *engines[rank]; }
  void run(const std::function<bool()>& done) {
    for (int round = 0; round < 100'000 && !done(); ++round) {
      for (auto& each : engines)
        each->progress();
    }
    ASSERT_TRUE(done()) << "still waiting after 100000 rounds";
  }
  bool quiet() {
    return near.quiet() && far.quiet() &&
           std::ranges::all_of(engines, [](auto& each) { return each->quiet(); });
  }

  base::Settings settings;
  datatype::PredefinedTypes types;
  LoopbackNetwork near, far;
  std::vector<std::unique_ptr<Engine>> engines;
};

constexpr std::uint64_t context = 4;

engine::Data describe(const TwoNodes& job, const Bytes& data) {
  return {const_cast<std::byte*>(data.data()), static_cast<MPI_Count>(data.size()),
          &job.types[MPI_BYTE]};
}

TEST(Networks, APeerHasTheThresholdsOfItsNetwork) {
  TwoNodes job;
  const Bytes data = pattern(3000); // eager to the neighbour, too long for that to the others
  EXPECT_EQ(job[0].send(job[0].peer(1), {context, 0, 7}, describe(job, data), SendMode::standard),
            nullptr);
  EXPECT_EQ(job[0].counters().eager_sent, 1u);
  EXPECT_EQ(job.near.messages(), 1u);
  EXPECT_EQ(job.far.messages(), 0u);

  EXPECT_EQ(job[0].send(job[0].peer(2), {context, 0, 7}, describe(job, data), SendMode::standard),
            nullptr);
  EXPECT_EQ(job[0].counters().eager_sent, 1u);
  EXPECT_EQ(job[0].counters().hybrid_sent, 1u);
  EXPECT_EQ(job.near.messages(), 1u);
  EXPECT_EQ(job.far.messages(), 1u);
  EXPECT_EQ(job.far.registered(), 1u);
  EXPECT_EQ(job.near.registered(), 0u);

  Bytes from_near(data.size()), from_far(data.size());
  auto* near = job[1].receive(&job[1].peer(0), {context, 0, 7}, describe(job, from_near));
  auto* far = job[2].receive(&job[2].peer(0), {context, 0, 7}, describe(job, from_far));
  job.run([&] { return near->complete && far->complete && job.quiet(); });
  EXPECT_EQ(from_near, data);
  EXPECT_EQ(from_far, data);
  EXPECT_EQ(job.far.registered(), 0u);
  job[1].release(near);
  job[2].release(far);
}

TEST(Networks, AnAnnouncementGoesWhereItsSenderIs) {
  TwoNodes job;
  Bytes destination(9000);
  const Bytes data = pattern(destination.size());
  auto* receive = job[3].receive(&job[3].peer(0), {context, 0, 7}, describe(job, destination));
  EXPECT_EQ(job.far.registered(), 1u);
  job.run([&] { return !job[0].progress(); });
  auto* send =
      job[0].send(job[0].peer(3), {context, 0, 7}, describe(job, data), SendMode::standard);
  EXPECT_EQ(job[0].counters().receiver_early, 1u);
  job.run([&] { return receive->complete && job.quiet(); });
  EXPECT_EQ(destination, data);
  EXPECT_EQ(job.near.messages() + job.near.puts() + job.near.gets(), 0u);
  EXPECT_EQ(job.far.registered(), 0u);
  if (send != nullptr) job[0].release(send);
  job[3].release(receive);
}

TEST(Networks, ARankThatNoneReachesIsAnError) {
  TwoNodes job;
  const Networks near_only(job.near.transport(0));
  Engine engine(near_only, job_ranks, job.settings);
  try {
    engine.peer(3);
    FAIL() << "rank 3 was reached";
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 3"), std::string::npos) << error.what();
  }
  EXPECT_EQ(engine.counters().peers, 0u);
}

TEST(Networks, OneThatDoesNotOrderBytesForbidsTheLastByte) {
  base::Settings settings;
  settings.last_byte = true;
  LoopbackOptions ordered;
  ordered.limits.orders_bytes = true;
  LoopbackNetwork near(1, ordered), far(1);
  EXPECT_NO_THROW(Engine(Networks({&near.transport(0)}), 1, settings));
  EXPECT_THROW(Engine(Networks({&near.transport(0), &far.transport(0)}), 1, settings), base::Error);
}

// Everybody sends to everybody on networks that refuse, delay and connect late. Half of the
// receives take any source: the n-th from a source is its n-th message.
class Storm : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Storm, EveryMessageArrivesOnceAndInOrder) {
  TwoNodes job(LoopbackOptions::rough(GetParam()));
  std::mt19937_64 random(GetParam());
  constexpr int count = 12; // messages of a pair
  const auto length = [](Rank from, Rank to, int n) {
    constexpr std::size_t lengths[] = {0, 8, 1000, 3000, 9000, 40000};
    return lengths[(from + 3 * to + static_cast<Rank>(n) * 5) % std::size(lengths)];
  };
  const auto content = [&](Rank from, Rank to, int n) {
    return pattern(length(from, to, n), static_cast<int>(from * 100 + to * 10) + n);
  };

  struct Receiving {
    engine::ReceiveRequest* request;
    Bytes data;
  };
  std::deque<Bytes> kept;
  std::vector<std::pair<Rank, SendRequest*>> sends;
  std::vector<std::deque<Receiving>> receives(job_ranks);
  std::vector<std::pair<Rank, Rank>> order; // of sends
  for (Rank from = 0; from < job_ranks; ++from) {
    for (Rank to = 0; to < job_ranks; ++to)
      order.insert(order.end(), from == to ? 0 : count, {from, to});
  }
  std::shuffle(order.begin(), order.end(), random);
  std::map<std::pair<Rank, Rank>, int> sent;
  std::vector<int> posted(job_ranks);
  const bool any_source = GetParam() % 2 == 0;
  for (const auto& [from, to] : order) {
    // Of the target, one receive for each send, before or after it.
    const auto post = [&, source = from, target = to] {
      Receiving& receiving = receives[target].emplace_back();
      receiving.data.resize(40000);
      engine::Peer* const peer = any_source ? nullptr : &job[target].peer(source);
      const int named = any_source ? MPI_ANY_SOURCE : static_cast<int>(source);
      receiving.request =
          job[target].receive(peer, {context, named, 7}, describe(job, receiving.data));
    };
    const bool early = random() % 2 == 0;
    if (early) post();
    const Bytes& data = kept.emplace_back(content(from, to, sent[{from, to}]++));
    const auto mode = random() % 4 == 0 ? SendMode::synchronous : SendMode::standard;
    SendRequest* const send = job[from].send(
        job[from].peer(to), {context, static_cast<int>(from), 7}, describe(job, data), mode);
    if (send != nullptr) sends.emplace_back(from, send);
    if (!early) post();
    if (random() % 3 == 0) job[static_cast<Rank>(random() % job_ranks)].progress();
  }
  job.run([&] {
    return std::ranges::all_of(sends, [](auto& each) { return each.second->complete; }) &&
           std::ranges::all_of(receives,
                               [](auto& list) {
                                 return std::ranges::all_of(
                                     list, [](auto& each) { return each.request->complete; });
                               }) &&
           job.quiet();
  });
  for (Rank to = 0; to < job_ranks; ++to) {
    std::map<int, int> seen;
    for (Receiving& receiving : receives[to]) {
      const auto& status = receiving.request->status;
      const auto from = static_cast<Rank>(status.source);
      const Bytes wanted = content(from, to, seen[status.source]++);
      ASSERT_EQ(status.bytes, wanted.size());
      receiving.data.resize(wanted.size());
      ASSERT_EQ(receiving.data, wanted) << "from " << from << " to " << to;
      job[to].release(receiving.request);
    }
  }
  for (const auto& [rank, send] : sends)
    job[rank].release(send);
  EXPECT_EQ(job.near.registered(), 0u);
  EXPECT_EQ(job.far.registered(), 0u);
  EXPECT_GT(job.near.messages(), 0u);
  EXPECT_GT(job.far.messages(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Storm, testing::Range<std::uint64_t>(1, 41));

// ------------------------------------------------------------------ waiting

// Writes down how it is waited on.
class Waiting final : public NullTransport {
 public:
  bool will_sleep = false;
  unsigned slept_us = 0;
  unsigned longest_us = UINT_MAX;
  int armed = 0, resumed = 0;
  bool drained = true;

  bool drain() override { return drained; }
  bool idle(unsigned, unsigned for_us) override {
    slept_us = for_us;
    return will_sleep;
  }
  void resume() override { ++resumed; }
  void arm() override { ++armed; }
  unsigned longest_sleep_us() const override { return longest_us; }
};

TEST(Networks, TheNearestWaitsAndTheOthersAreArmedBeforeItSleeps) {
  Waiting nearest, other;
  const Networks networks({&nearest, &other});
  networks.idle(1, 1000);
  EXPECT_EQ(nearest.slept_us, 1000u);
  EXPECT_EQ(other.armed, 0);
  nearest.will_sleep = true;
  networks.idle(2, 1000);
  EXPECT_EQ(other.armed, 1);
  EXPECT_EQ(nearest.armed, 0);
  other.longest_us = 300; // it has something to do soon
  networks.idle(3, 1000);
  EXPECT_EQ(nearest.slept_us, 300u);
  networks.resume();
  EXPECT_EQ(nearest.resumed, 1);
  EXPECT_EQ(other.resumed, 0);
  EXPECT_EQ(other.slept_us, 0u);
}

TEST(Networks, AreDrainedAndLeftWhenAllAre) {
  Waiting nearest, other;
  const Networks networks({&nearest, &other});
  EXPECT_TRUE(networks.drain() && networks.leave());
  other.drained = false;
  EXPECT_FALSE(networks.drain() || networks.leave());
  other.drained = true;
  nearest.drained = false;
  EXPECT_FALSE(networks.drain() || networks.leave());
}

} // namespace
} // namespace macadam::test
