// SPDX-License-Identifier: BSD-3-Clause
// Processes whose settings differ in what they must have alike: told at first contact, not found in
// a hang; and those that may differ, and do.
#include "jobs.h"
#include "mpi/process.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

using Change = std::function<void(base::Settings& settings)>;

int allreduce() {
  int one = 1, sum = 0;
  return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

WorldOptions two_machines() {
  WorldOptions options = smooth(4);
  options.ranks_per_node = 2;
  return options;
}

// What was printed since CaptureStderr() by a world that was aborted; "none" if it has finished.
std::string printed(const Outcome& outcome) {
  const std::string text = testing::internal::GetCapturedStderr();
  if (outcome.end == Outcome::End::finished) return "none";
  EXPECT_EQ(outcome.end, Outcome::End::aborted) << outcome.text;
  return text;
}

// What is printed if the ranks from `first` on have other settings. `late`: when all have told
// where they are reached, so that nobody has to wait for that.
std::string refusal(const WorldOptions& options, int first, const Change& change,
                    bool late = false) {
  testing::internal::CaptureStderr();
  const Outcome outcome = World(options).run([&](int rank) {
    if (rank >= first) change(sim::Rank::current()->process()->settings);
    MPI_Init(nullptr, nullptr);
    if (late) sim::Rank::current()->compute(10'000 * sim::microsecond);
    allreduce();
    MPI_Finalize();
    return 0;
  });
  return printed(outcome);
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* const part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(Agreement, rules_of_collectives_are_the_same_on_all_machines) {
  const Change none = [](base::Settings& settings) { settings.levels = "none"; };
  for (const int first : {2, 3}) // a machine, and one rank of it
    expect_parts(refusal(two_machines(), first, none),
                 {"MPI_ERR_OTHER", " on host ", " and rank ",
                  "different rules of collectives for several machines", "'levels'", "macadam tune",
                  "copy the file to all machines of the job"});
}

TEST(Agreement, rules_are_compared_not_their_words) {
  WorldOptions options = two_machines();
  options.settings->levels = "allreduce leaders 4096 2, barrier leaders any 4";
  EXPECT_EQ(refusal(options, 2,
                    [](base::Settings& settings) {
                      settings.levels = "barrier leaders any 4, allreduce leaders 4K 2";
                    }),
            "none");
}

// No rule for several machines is taken there.
TEST(Agreement, rules_may_differ_on_one_machine) {
  WorldOptions options = two_machines();
  options.ranks_per_node = 4;
  EXPECT_EQ(refusal(options, 2, [](base::Settings& settings) { settings.levels = "none"; }),
            "none");
}

TEST(Agreement, messages_have_one_form) {
  const Change checked = [](base::Settings& settings) { settings.check = true; };
  for (const bool late : {false, true}) {
    for (const int per_node : {2, 4}) {
      WorldOptions options = two_machines();
      options.ranks_per_node = per_node;
      expect_parts(refusal(options, 2, checked, late),
                   {"MPI_ERR_OTHER", " on host ", "MACADAM_CHECK is ", " here and ",
                    "give all ranks the same"});
    }
  }
}

// A partitioned request for a process that is refused is none.
TEST(Agreement, nothing_is_left_of_a_request_that_is_refused) {
  WorldOptions options = two_machines();
  options.ranks_per_node = 4;
  bool was_refused = false;
  testing::internal::CaptureStderr();
  const Outcome outcome = World(options).run([&](int rank) {
    mpi::Process& process = *sim::Rank::current()->process();
    if (rank == 3) process.settings.check = true;
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sim::Rank::current()->compute((rank == 0 ? 10'000 : 20'000) * sim::microsecond);
    if (rank == 0) {
      int memory[4] = {};
      MPI_Request request = MPI_REQUEST_NULL;
      const std::uint32_t references = process.world.all->references;
      EXPECT_NE(
          MPI_Psend_init(memory, 2, 2, MPI_INT, 3, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
          MPI_SUCCESS);
      EXPECT_NE(
          MPI_Precv_init(memory, 2, 2, MPI_INT, 3, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
          MPI_SUCCESS);
      EXPECT_EQ(process.instance->requests.partitioned.live(), 0u);
      EXPECT_EQ(process.world.all->references, references);
      was_refused = true;
    }
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 0;
  });
  EXPECT_NE(printed(outcome), "none"); // rank 0 ends it
  EXPECT_TRUE(was_refused);
}

// Over a network; shared memory has room of its own.
TEST(Agreement, the_longest_eager_message_is_the_same) {
  const Change longer = [](base::Settings& settings) { settings.rdma_eager *= 2; };
  expect_parts(refusal(two_machines(), 2, longer),
               {"MPI_ERR_OTHER", "rdma_eager is ", "8192", "16384", "MACADAM_RDMA_EAGER"});
  WorldOptions options = two_machines();
  options.ranks_per_node = 4;
  EXPECT_EQ(refusal(options, 2, longer), "none");
}

// Two jobs, of which the second has other settings, that meet and become one communicator.
std::string meeting(const Change& change) {
  WorldOptions options = two_machines();
  options.jobs = 2;
  testing::internal::CaptureStderr();
  const Outcome outcome = World(options).run([&](int) {
    if (job() == 1) change(sim::Rank::current()->process()->settings);
    MPI_Init(nullptr, nullptr);
    allreduce();
    MPI_Comm inter = meet_at(port_of_first("here")), both = MPI_COMM_NULL;
    talk(inter);
    MPI_Intercomm_merge(inter, job(), &both);
    for (const int count : {1, 1000, 100'000}) { // of more than one rule
      std::vector<int> ones(static_cast<std::size_t>(count), 1), sums(ones.size());
      MPI_Allreduce(ones.data(), sums.data(), count, MPI_INT, MPI_SUM, both);
      EXPECT_EQ(sums, std::vector<int>(ones.size(), 8));
    }
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return 0;
  });
  return printed(outcome);
}

// Communicators of several jobs have one level.
TEST(Agreement, jobs_of_different_rules_meet) {
  EXPECT_EQ(meeting([](base::Settings& settings) { settings.levels = "none"; }), "none");
}

TEST(Agreement, jobs_with_messages_of_different_forms_do_not_meet) {
  expect_parts(meeting([](base::Settings& settings) { settings.check = true; }),
               {"MPI_ERR_OTHER", " of another job on host ", "MACADAM_CHECK is "});
}

} // namespace
} // namespace macadam::test
