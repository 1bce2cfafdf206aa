// SPDX-License-Identifier: BSD-3-Clause
// Two jobs in one world, whose processes send to each other: by the engine alone, as they have not
// met by MPI; those of each job by MPI, at the same time and with the same ranks and tags.
#include "jobs.h"
#include "mpi/context.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

constexpr int ranks = 3;
constexpr std::array<std::size_t, 5> sizes = {0, 8, 3000, 20000, 200000}; // of all protocols

WorldOptions two_jobs(std::uint64_t seed) {
  WorldOptions options = rough(ranks, seed);
  options.jobs = 2;
  return options;
}

// A process as the test names it; what it sends says who it is.
struct Who {
  int job;
  int rank;
};
std::vector<char> text(Who from, Who to, std::size_t bytes) {
  const char begin = static_cast<char>('a' + 8 * from.job + 2 * from.rank + to.rank + 4 * to.job);
  std::vector<char> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<char>(begin + i % 13);
  return made;
}

// One process's part.
class Talker {
 public:
  explicit Talker(int rank)
      : self_(*sim::Rank::current()), process_(*self_.process()),
        instance_(*process_.instance), me_{self_.job(), rank}, theirs_(self_.meet(1 - me_.job)) {
    // As if rank 0 of the first job had made a communicator of both.
    const boot::ProcessName leader = self_.processes().name(me_.job == 0 ? 0 : theirs_);
    context_ = mpi::joint_context_of(leader, 1);
  }

  [[nodiscard]] engine::Rank index_of(int rank) const {
    return theirs_ + static_cast<engine::Rank>(rank);
  }

  // Each sends to all of both jobs, and receives from all; from the other job in an order of its
  // own, or from anybody.
  void exchange(std::size_t bytes, bool from_any) {
    ++tag_; // the other job may be an exchange ahead, and messages from anybody are received here
    std::vector<std::vector<char>> out, in;
    std::vector<MPI_Request> requests;
    std::vector<engine::ReceiveRequest*> receives;
    std::vector<engine::SendRequest*> sends;
    for (int rank = 0; rank < ranks; ++rank) {
      MPI_Irecv(buffer(in, bytes), static_cast<int>(bytes), MPI_CHAR, rank, tag_, MPI_COMM_WORLD,
                &requests.emplace_back());
      engine::Peer* const from =
          from_any ? nullptr : &instance_.engine->peer(index_of(ranks - 1 - rank));
      const int source = from_any ? MPI_ANY_SOURCE : ranks - 1 - rank;
      receives.push_back(instance_.engine->receive(from, {context_, source, tag_},
                                                   data(buffer(in, bytes), bytes)));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      out.push_back(text(me_, {me_.job, rank}, bytes));
      MPI_Isend(out.back().data(), static_cast<int>(bytes), MPI_CHAR, rank, tag_, MPI_COMM_WORLD,
                &requests.emplace_back());
      out.push_back(text(me_, {1 - me_.job, rank}, bytes));
      sends.push_back(
          instance_.engine->send(instance_.engine->peer(index_of(rank)), {context_, me_.rank, tag_},
                                 data(out.back().data(), bytes), engine::SendMode::standard));
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (engine::SendRequest* const send : sends) {
      if (send == nullptr) continue; // gone at once
      instance_.wait_until([&] { return send->complete; });
      EXPECT_EQ(send->status.error, MPI_SUCCESS);
      instance_.engine->release(send);
    }
    for (std::size_t i = 0; i < receives.size(); ++i) {
      engine::ReceiveRequest* const receive = receives[i];
      instance_.wait_until([&] { return receive->complete; });
      EXPECT_EQ(receive->status.error, MPI_SUCCESS);
      EXPECT_EQ(receive->status.bytes, bytes);
      const int rank = static_cast<int>(i);
      EXPECT_EQ(in[2 * i], text({me_.job, rank}, me_, bytes)) << "within the job";
      EXPECT_EQ(in[2 * i + 1], text({1 - me_.job, receive->status.source}, me_, bytes));
      EXPECT_TRUE(from_any || receive->status.source == ranks - 1 - rank);
      instance_.engine->release(receive);
    }
  }

 private:
  static char* buffer(std::vector<std::vector<char>>& all, std::size_t bytes) {
    return all.emplace_back(bytes).data();
  }
  engine::Data data(char* memory, std::size_t bytes) {
    return {memory, static_cast<MPI_Count>(bytes), &process_.types[MPI_CHAR]};
  }

  sim::Rank& self_;
  mpi::Process& process_;
  mpi::Instance& instance_;
  const Who me_;
  const engine::Rank theirs_;
  std::uint64_t context_ = 0;
  int tag_ = 0;
};

int talk(int rank) {
  MPI_Init(nullptr, nullptr);
  Talker talker(rank);
  for (const std::size_t bytes : sizes) {
    talker.exchange(bytes, false);
    talker.exchange(bytes, true);
    long sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sum, ranks);
  }
  MPI_Finalize();
  return 0;
}

void expect_finished(const Outcome& outcome) {
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(Jobs, talk_to_each_other_over_a_rough_network) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_finished(World(two_jobs(seed)).run(talk));
  }
}

TEST(Jobs, share_few_queue_pairs) {
  for (const base::ReceiveMode mode : {base::ReceiveMode::shared, base::ReceiveMode::credit,
                                       base::ReceiveMode::ring, base::ReceiveMode::mixed}) {
    WorldOptions options = two_jobs(7);
    options.settings->rdma_receive = mode;
    options.settings->rdma_queue_pairs = 4; // three connections to five peers
    expect_finished(World(options).run(talk));
  }
}

TEST(Jobs, are_met_before_the_other_has_started) {
  WorldOptions options = two_jobs(3);
  options.faults = {};
  expect_finished(World(options).run([](int rank) {
    if (sim::Rank::current()->job() == 1) sim::Rank::current()->compute(20000 * sim::microsecond);
    return talk(rank);
  }));
}

// What comes of a job that this one has not been told of is as good as lost, and comes again.
TEST(Jobs, are_not_heard_before_they_are_met) {
  WorldOptions options = two_jobs(3);
  options.faults = {};
  expect_finished(World(options).run([](int rank) {
    MPI_Init(nullptr, nullptr);
    if (sim::Rank::current()->job() == 1) sim::Rank::current()->compute(20000 * sim::microsecond);
    Talker talker(rank);
    talker.exchange(3000, false);
    EXPECT_EQ(MPI_Finalize(), MPI_SUCCESS);
    return 0;
  }));
}

// A world gives out secrets; two that lead to one number are not told apart in context ids.
TEST(Jobs, of_one_number_are_refused) {
  struct Job final : boot::Job {
    explicit Job(boot::Secret its) : secret_(its) {}
    [[nodiscard]] int rank() const override { return 0; }
    [[nodiscard]] int size() const override { return 4; }
    [[nodiscard]] boot::Secret secret() const override { return secret_; }
    [[nodiscard]] int cores() const override { return 1; }
    void publish(std::span<const std::byte>) override {}
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int) const override { return {}; }
    const boot::Secret secret_;
  };
  Job own({1}), other({2}), same({1});
  boot::Processes processes(own);
  EXPECT_EQ(processes.add(other), 4u);
  EXPECT_EQ(processes.add(other), 4u);
  EXPECT_EQ(processes.add(own), 0u);
  EXPECT_THROW(processes.add(same), base::Error);
  EXPECT_EQ(processes.size(), 8u);
  EXPECT_EQ(processes.find({other.number(), 3}), 7u);
  EXPECT_EQ(processes.find({other.number(), 4}), std::nullopt);
  EXPECT_EQ(processes.find({own.number(), 3}), 3u);
  EXPECT_EQ(processes.find({own.number() ^ other.number() ^ 1, 0}), std::nullopt);
  EXPECT_EQ(processes.name(7), (boot::ProcessName{other.number(), 3}));
  EXPECT_EQ(processes.name(2), (boot::ProcessName{own.number(), 2}));
}

TEST(Contexts, of_several_jobs_are_none_of_one_job) {
  using mpi::context_of, mpi::joint_context_of;
  EXPECT_EQ(context_of(0, 1), 4u);
  const std::uint64_t last = context_of((1u << 31) - 1, mpi::most_contexts - 1) | 3;
  EXPECT_LT(last, joint_context_of({0, 0}, 0));
  const boot::ProcessName highest{(1u << boot::job_number_bits) - 1, mpi::most_joint_leaders - 1};
  EXPECT_EQ(joint_context_of(highest, mpi::most_joint_contexts - 1) | 3, ~std::uint64_t{0});
  EXPECT_NE(joint_context_of({1, 0}, 0), joint_context_of({0, mpi::most_joint_leaders - 1}, 0));
}

} // namespace
} // namespace macadam::test
