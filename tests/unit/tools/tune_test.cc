// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/command.h"
#include "tools/macadam/level_tuning.h"
#include "tools/macadam/tune.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace macadam::tools {
namespace {

TEST(Threshold, is_where_the_other_protocol_is_faster) {
  const std::vector<Comparison> measured = {
      {1024, 1.0, 2.0}, {2048, 1.5, 2.0}, {4096, 2.1, 2.0}, {8192, 4.0, 3.0}, {16384, 3.0, 5.0}};
  EXPECT_EQ(choose_threshold(measured, 1.0, 512), 2048);
  EXPECT_EQ(choose_threshold(measured, 1.05, 512), 4096); // almost as fast
  EXPECT_EQ(choose_threshold(measured, 2.0, 512), 16384);
  EXPECT_EQ(choose_threshold(measured, 0.1, 512), 512); // at no size
  EXPECT_EQ(choose_threshold({}, 1.0, 512), 512);
}

// On one level 10 us, whatever it is.
LevelTimes times(const char* collective, int per_machine, std::int64_t bytes,
                 std::map<std::string, double> two_levels) {
  return {collective, per_machine, bytes, 10, std::move(two_levels)};
}

TEST(Levels, are_two_where_they_are_no_slower) {
  EXPECT_EQ(choose_levels(std::vector{times("barrier", 2, 0, {{"leaders", 11}}),
                                      times("barrier", 4, 0, {{"leaders", 10}}),
                                      times("barrier", 8, 0, {{"leaders", 9}})}),
            "barrier leaders any 4");
  // Slower again with more ranks of a machine.
  EXPECT_EQ(choose_levels(std::vector{times("barrier", 2, 0, {{"leaders", 9}}),
                                      times("barrier", 4, 0, {{"leaders", 11}}),
                                      times("barrier", 8, 0, {{"leaders", 9}})}),
            "barrier leaders any 8");
  EXPECT_EQ(choose_levels(std::vector{times("barrier", 2, 0, {{"leaders", 11}})}), "none");
  // Long blocks have one level, unless that is so for a few ranks of a machine only.
  EXPECT_EQ(choose_levels(std::vector{times("alltoall", 2, 64, {{"slices", 9}}),
                                      times("alltoall", 2, 4096, {{"slices", 11}}),
                                      times("alltoall", 8, 64, {{"slices", 9}}),
                                      times("alltoall", 8, 4096, {{"slices", 11}})}),
            "alltoall slices 64 2");
  EXPECT_EQ(choose_levels(std::vector{times("alltoall", 2, 64, {{"slices", 9}}),
                                      times("alltoall", 2, 4096, {{"slices", 11}}),
                                      times("alltoall", 8, 64, {{"slices", 9}}),
                                      times("alltoall", 8, 4096, {{"slices", 9}})}),
            "alltoall slices 64 2, alltoall slices 4096 8");
}

TEST(Levels, have_one_rank_of_a_machine_or_several_by_bytes) {
  constexpr std::int64_t vector = 4 << 20;
  const auto chosen = [](double short_by_leaders, double long_by_slices) {
    return choose_levels(
        std::vector{times("allreduce", 2, 8, {{"leaders", short_by_leaders}, {"slices", 12}}),
                    times("allreduce", 2, 65536, {{"leaders", 9}, {"slices", 7}}),
                    times("allreduce", 2, vector, {{"leaders", 9}, {"slices", long_by_slices}}),
                    times("allreduce", 8, 8, {{"leaders", 5}, {"slices", 12}}),
                    times("allreduce", 8, 65536, {{"leaders", 9}, {"slices", 7}}),
                    times("allreduce", 8, vector, {{"leaders", 9}, {"slices", 7}})});
  };
  EXPECT_EQ(chosen(8, 7), "allreduce leaders 8 2, allreduce slices any 2");
  EXPECT_EQ(chosen(8, 11),
            "allreduce leaders 8 2, allreduce slices 65536 2, allreduce slices any 8");
  // A line for slices would take the short ones of 2 ranks, too, where they are slower.
  EXPECT_EQ(chosen(11, 7), "allreduce leaders 8 8, allreduce slices any 8");
}

TEST(Command, gives_its_output_or_says_what_failed) {
  EXPECT_EQ(output_of({"/bin/echo", "a b", "c"}), "a b c\n");
  const auto failure = [](const std::vector<std::string>& arguments) {
    try {
      output_of(arguments);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("nothing failed");
  };
  EXPECT_EQ(failure({"/bin/false", "x"}), "'/bin/false x' failed with status 1");
  EXPECT_EQ(failure({"/bin/sh", "-c", "kill -9 $$"}),
            "'/bin/sh -c kill -9 $$' failed with signal 9");
  EXPECT_NE(failure({"/nowhere/program"}).find("/nowhere/program cannot be started"),
            std::string::npos);
}

} // namespace
} // namespace macadam::tools
