// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/command.h"
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
