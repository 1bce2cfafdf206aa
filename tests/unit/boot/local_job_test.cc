// SPDX-License-Identifier: BSD-3-Clause
#include "boot/local_job.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace macadam::boot {
namespace {

TEST(LocalJob, AProcessGivesUpForOneGeneration) {
  LocalJob job = LocalJob::join(); // without mpiexec: a job of one
  job.enter();
  EXPECT_EQ(job.life(0), Life::running);
  EXPECT_EQ(job.failures(), 0u);
  job.give_up();
  EXPECT_EQ(job.life(0), Life::failed);
  EXPECT_EQ(job.failures(), 1u);
  job.leave();
  job.enter();
  EXPECT_EQ(job.life(0), Life::running);
  job.leave();
}

// A rank of a job of this machine.
LocalJob join(const JobMemory& memory, int rank) {
  setenv(job_variable, fmt::format("{}:{}", dup(memory.fd()), rank).c_str(), 1);
  return LocalJob::join();
}

// What it did there could hit the memory of a rank that begins anew.
TEST(LocalJob, NoRankIsStillIdleInABarrierWhenAnotherGoesOn) {
  const JobMemory memory = JobMemory::create({{"here", 2}}, 0, 1);
  LocalJob first = join(memory, 0), second = join(memory, 1);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> idle = false, gone_on = false, late = false;
    std::thread waiting([&] {
      first.barrier([&] {
        idle = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        late = late || gone_on;
      });
    });
    while (!idle)
      std::this_thread::yield();
    second.barrier();
    gone_on = true;
    waiting.join();
    EXPECT_FALSE(late) << "round " << round;
  }
}

} // namespace
} // namespace macadam::boot
