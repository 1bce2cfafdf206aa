// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lock.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace macadam::mpi {
namespace {

TEST(Lock, OneThreadMayTakeItAgain) {
  Lock lock;
  const std::lock_guard outer(lock);
  const std::lock_guard inner(lock);
  EXPECT_FALSE(lock.contended());
}

TEST(Lock, ReleaseLetsOthersInHoweverDeep) {
  Lock lock;
  const std::lock_guard outer(lock);
  const std::lock_guard inner(lock);
  int seen = 0;
  std::thread other([&] {
    const std::lock_guard guard(lock);
    seen = 1;
  });
  while (!lock.contended())
    std::this_thread::yield();
  EXPECT_EQ(seen, 0);
  const unsigned depth = lock.release();
  EXPECT_EQ(depth, 2u);
  other.join();
  lock.retake(depth);
  EXPECT_EQ(seen, 1);
}

TEST(Lock, CountsAreNotLost) {
  Lock lock;
  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 10'000; ++i) {
      const std::lock_guard outer(lock);
      const std::lock_guard inner(lock);
      ++count;
      if (i % 64 == 0) lock.retake(lock.release());
    }
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  EXPECT_EQ(count, 20'000);
}

} // namespace
} // namespace macadam::mpi
