// SPDX-License-Identifier: BSD-3-Clause
#include "boot/hang/hang_report.h"
#include "boot/hang/stacks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace macadam::boot {
namespace {

std::size_t number_of(const std::string& part, const std::string& text) {
  std::size_t number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++number;
  return number;
}

std::string page_of_receiver(const std::string& unexpected) {
  return hang_report(
      "host a",
      {{RankStatus::Kind::answered,
        R"({"rendezvous": [{"peer": 1, "comm": "w", "tag": 9, "sending": true, "bytes": 4,
            "protocol": "EAGER", "stage": "sent, waits until it is received"}]})"},
       {RankStatus::Kind::answered,
        R"({"posted": [{"comm": "w", "source": 0, "tag": 17, "bytes": 4}], "unexpected": [)" +
            unexpected + "]}"}});
}

// Its sender, which waits until it is received, tells of it too.
TEST(NearMisses, NameAMessageThatHasArrivedOnce) {
  const std::string arrived = page_of_receiver(R"({"comm": "w", "source": 0, "tag": 9})");
  EXPECT_EQ(number_of("one with tag 9 has arrived and nobody receives it", arrived), 1U);
  EXPECT_EQ(number_of("is a tag wrong?", arrived), 1U) << arrived;
  const std::string other = page_of_receiver(R"({"comm": "w", "source": 0, "tag": 8})");
  EXPECT_EQ(number_of("one with tag 8 has arrived and nobody receives it", other), 1U);
  EXPECT_EQ(number_of("one with tag 9 is waiting to be sent", other), 1U) << other;
}

// What the stacks are where there is such a "gdb" in PATH; "": none.
std::map<pid_t, std::string> stacks_by(const std::string& gdb,
                                       const std::vector<pid_t>& processes) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("stacks-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  if (!gdb.empty()) {
    std::ofstream(folder / "gdb") << "#!/bin/sh\n" << gdb;
    std::filesystem::permissions(folder / "gdb", std::filesystem::perms::owner_all);
  }
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  Stacks stacks(processes);
  setenv("PATH", path.c_str(), 1);
  while (!stacks.are_known())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::filesystem::remove_all(folder);
  return stacks.by_process();
}

TEST(Stacks, AreOfEachProcessOrTheReasonWhyNot) {
  const std::string of_7_alone = "while [ \"$1\" != -p ]; do shift; done\n"
                                 "[ $2 = 7 ] && echo '#0  0x1 in main () at ../a.c:7'\n";
  const auto some = stacks_by(of_7_alone, {6, 7, 8});
  ASSERT_EQ(some.size(), 3U);
  EXPECT_EQ(some.at(7), "main (a.c:7)");
  for (const pid_t process : {6, 8})
    EXPECT_EQ(number_of("not known, as gdb may not look into it", some.at(process)), 1U);
  const std::string no_gdb = "not known, as there is no gdb";
  EXPECT_EQ(stacks_by("", {6, 7}), (std::map<pid_t, std::string>{{6, no_gdb}, {7, no_gdb}}));
}

} // namespace
} // namespace macadam::boot
