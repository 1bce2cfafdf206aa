// SPDX-License-Identifier: BSD-3-Clause
#include "boot/machine.h"
#include "tools/mpiexec/allocation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

namespace macadam::tools {
namespace {

using Names = std::vector<std::string>;

TEST(Names, AreExpanded) {
  EXPECT_EQ(expand_names("a"), (Names{"a"}));
  EXPECT_EQ(expand_names("node[0-2,07],b"), (Names{"node0", "node1", "node2", "node07", "b"}));
  EXPECT_EQ(expand_names("rack[1-2]n[09-10]x"),
            (Names{"rack1n09x", "rack1n10x", "rack2n09x", "rack2n10x"}));
}

TEST(Names, WhatIsNoListIsRefused) {
  for (const char* const list : {"a[", "a[1", "a[x]", "a[2-1]", "a[1-]", "a[1-2-3]",
                                 "a[1-2000000000]", "a[1-2000]b[1-2000]"})
    EXPECT_THROW(expand_names(list), std::runtime_error) << list;
}

TEST(Counts, AreExpanded) {
  EXPECT_EQ(expand_counts("4"), (std::vector{4}));
  EXPECT_EQ(expand_counts("2(x3),1"), (std::vector{2, 2, 2, 1}));
  for (const char* const list :
       {"x", "2(x3", "2(3)", "2(x3)4", "2,,1", "0", "2,0(x2)", "1(x1048577)"})
    EXPECT_THROW(expand_counts(list), std::runtime_error) << list;
}

class Environment : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name :
         {"SLURM_JOB_ID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "PBS_NODEFILE",
          "LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "PE_HOSTFILE"})
      unsetenv(name);
  }
  static Allocation find(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
    const Allocation found = find_allocation();
    for (const auto& [name, value] : variables)
      unsetenv(name.c_str());
    return found;
  }
  // A file with this text.
  static std::string file(const std::string& text) {
    const std::string path = testing::TempDir() + "allocation";
    std::ofstream(path) << text;
    return path;
  }
  static std::string show(const std::vector<Host>& hosts) {
    std::string text;
    for (const Host& host : hosts)
      text += host.name + ":" + std::to_string(host.slots) + " ";
    return text;
  }
};

TEST_F(Environment, OfNoBatchSystem) {
  EXPECT_EQ(show(find({}).hosts), "");
  EXPECT_EQ(show(find({{"PBS_NODEFILE", ""}}).hosts), "");
}

TEST_F(Environment, OfSlurm) {
  const Allocation found = find({{"SLURM_JOB_ID", "7"},
                                 {"SLURM_JOB_NODELIST", "no-host[1-2]"},
                                 {"SLURM_TASKS_PER_NODE", "3,1"},
                                 {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"}});
  EXPECT_EQ(show(found.hosts), "no-host1:3 no-host2:1 ");
  ASSERT_FALSE(found.starter.empty());
  EXPECT_EQ(found.starter.front(), "srun");
  EXPECT_THROW(find({{"SLURM_JOB_ID", "7"},
                     {"SLURM_JOB_NODELIST", "no-host[1-2]"},
                     {"SLURM_TASKS_PER_NODE", "3"}}),
               std::runtime_error);
}

// Where the machines are the job's and the tasks are the step's.
TEST_F(Environment, OfAStepOfSlurm) {
  std::map<std::string, std::string> variables = {{"SLURM_JOB_ID", "7"},
                                                  {"SLURM_JOB_NODELIST", "no-host[1-2]"},
                                                  {"SLURM_TASKS_PER_NODE", "1"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                                  {"SLURM_JOB_CPUS_PER_NODE", "8,1"}};
  EXPECT_EQ(show(find(variables).hosts), "no-host1:8 no-host2:1 ");
  variables["SLURM_CPUS_PER_TASK"] = "2";
  EXPECT_EQ(show(find(variables).hosts), "no-host1:4 no-host2:1 ");
  variables["SLURM_TASKS_PER_NODE"] = "3,2"; // the step has kept the job's
  EXPECT_EQ(show(find(variables).hosts), "no-host1:3 no-host2:2 ");
}

TEST_F(Environment, OfPbs) {
  const std::string path = file("no-host1\nno-host2\nno-host1\n" + boot::host_name() + "\n");
  const Allocation found = find({{"PBS_NODEFILE", path}});
  EXPECT_EQ(show(found.hosts), "no-host1:2 no-host2:1 " + boot::host_name() + ":1 ");
  EXPECT_TRUE(found.starter.empty());
  EXPECT_THROW(find({{"PBS_NODEFILE", "/no/file"}}), std::runtime_error);
}

TEST_F(Environment, OfLsf) {
  EXPECT_EQ(show(find({{"LSB_DJOB_HOSTFILE", file("no-host1\nno-host1\nno-host2\n")}}).hosts),
            "no-host1:2 no-host2:1 ");
  EXPECT_EQ(show(find({{"LSB_MCPU_HOSTS", "no-host1 2 no-host2 4"}}).hosts),
            "no-host1:2 no-host2:4 ");
  EXPECT_THROW(find({{"LSB_MCPU_HOSTS", "no-host1 2 no-host2"}}), std::runtime_error);
}

TEST_F(Environment, OfGridEngine) {
  const std::string path = file("no-host1 2 all.q@no-host1 UNDEFINED\nno-host2 1 all.q <NULL>\n");
  EXPECT_EQ(show(find({{"PE_HOSTFILE", path}}).hosts), "no-host1:2 no-host2:1 ");
  EXPECT_THROW(find({{"PE_HOSTFILE", file("no-host1 many\n")}}), std::runtime_error);
}

} // namespace
} // namespace macadam::tools
