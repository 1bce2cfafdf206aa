// SPDX-License-Identifier: BSD-3-Clause
#include "boot/local_job.h"

#include <gtest/gtest.h>

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

} // namespace
} // namespace macadam::boot
