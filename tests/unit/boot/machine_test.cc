// SPDX-License-Identifier: BSD-3-Clause
#include "boot/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace macadam::boot {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// A machine whose proc and sys are files in a folder.
class FreeMemoryTest : public testing::Test {
 protected:
  FreeMemoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "machine-XXXXXX").string();
    root_ = mkdtemp(name.data());
    write("/proc/meminfo", "MemTotal:       8192000 kB\nMemFree:  1024 kB\n"
                           "MemAvailable:   4096000 kB\nCommitLimit:    2048000 kB\n"
                           "Committed_AS:    512000 kB\n");
  }
  ~FreeMemoryTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(FreeMemoryTest, IsWhatTheMachineHas) {
  write("/proc/sys/vm/overcommit_memory", "0\n");
  const FreeMemory free = free_memory(root_);
  EXPECT_EQ(free.bytes, 4000 * mib);
  EXPECT_EQ(free.whose, "the machine");
  EXPECT_EQ(free.remedy, "");
}

TEST_F(FreeMemoryTest, IsWhatMayBeCommittedWhereNothingIsOvercommitted) {
  write("/proc/sys/vm/overcommit_memory", "2\n");
  const FreeMemory free = free_memory(root_);
  EXPECT_EQ(free.bytes, 1500 * mib);
  EXPECT_NE(free.remedy.find("overcommit_ratio"), std::string::npos) << free.remedy;
}

TEST_F(FreeMemoryTest, HeedsTheGroupsAbove) {
  write("/proc/self/cgroup", "0::/user/job\n");
  const std::string sys = "/sys/fs/cgroup";
  write(sys + "/user/job/memory.max", "max\n");
  write(sys + "/user/job/memory.current", "1048576\n");
  write(sys + "/user/memory.max", std::to_string(1000 * mib));
  write(sys + "/user/memory.current", std::to_string(700 * mib));
  write(sys + "/user/memory.stat", "anon 1\ninactive_anon 5\ninactive_file 104857600\nslab 3\n");
  const FreeMemory free = free_memory(root_);
  EXPECT_EQ(free.bytes, 400 * mib) << "pages of files can be had back";
  EXPECT_EQ(free.whose, "the control group /user");
  EXPECT_NE(free.remedy.find("/user/memory.max (1000 MiB)"), std::string::npos) << free.remedy;
}

TEST_F(FreeMemoryTest, HeedsTheRootOfAContainer) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n");
  const std::string sys = "/sys/fs/cgroup/memory";
  write(sys + "/memory.limit_in_bytes", std::to_string(512 * mib));
  write(sys + "/memory.usage_in_bytes", std::to_string(600 * mib));
  const FreeMemory free = free_memory(root_);
  EXPECT_EQ(free.bytes, 0u);
  EXPECT_EQ(free.whose, "the control group /");
}

TEST_F(FreeMemoryTest, TellsOfProcessesThatWereEnded) {
  write("/proc/self/cgroup", "4:memory:/docker/1\n0::/job\n");
  EXPECT_EQ(ends_for_want_of_memory(root_), 0u);
  write("/sys/fs/cgroup/memory/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_EQ(ends_for_want_of_memory(root_), 3u);
  write("/sys/fs/cgroup/job/memory.events", "low 0\noom 9\noom_kill 5\noom_group_kill 0\n");
  EXPECT_EQ(ends_for_want_of_memory(root_), 8u);
  // One in this group is told, though more were in another.
  write("/sys/fs/cgroup/memory/docker/1/memory.oom_control", "oom_kill 1\n");
  EXPECT_EQ(ends_for_want_of_memory(root_), 9u);
}

TEST_F(FreeMemoryTest, NamesTheLimitsOfControlGroups) {
  write("/proc/self/cgroup", "5:pids:/docker/1\n4:memory:/docker/1\n0::/user/job\n");
  const std::string sys = root_ + "/sys/fs/cgroup";
  EXPECT_EQ(memory_limit(root_).file, "");
  EXPECT_EQ(reached_process_limit(root_).file, "");
  write("/sys/fs/cgroup/user/memory.max", std::to_string(64 * mib));
  write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
  EXPECT_EQ(memory_limit(root_).file, sys + "/user/memory.max");
  EXPECT_EQ(memory_limit(root_).most, 64 * mib);
  write("/sys/fs/cgroup/pids/docker/1/pids.max", "20\n");
  write("/sys/fs/cgroup/pids/docker/1/pids.current", "19\n");
  EXPECT_EQ(reached_process_limit(root_).file, "");
  write("/sys/fs/cgroup/pids/docker/1/pids.current", "20\n");
  EXPECT_EQ(reached_process_limit(root_).file, sys + "/pids/docker/1/pids.max");
  EXPECT_EQ(reached_process_limit(root_).most, 20u);
  EXPECT_GT(processes_of_user(), 0u);
}

TEST_F(FreeMemoryTest, HasNoBoundWhereNothingIsKnown) {
  EXPECT_GT(free_memory(root_ + "/nowhere").bytes, std::uint64_t{1} << 50);
  EXPECT_GT(free_memory().bytes, 0u);
}

} // namespace
} // namespace macadam::boot
