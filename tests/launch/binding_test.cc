// SPDX-License-Identifier: BSD-3-Clause
// Ranks are bound on machines of more hardware threads than a cpu_set_t has room for: here the C
// library's calls are those of one with 4,096, of which these may be used.
#include "tools/mpiexec/binding.h"

#include "base/affinity.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <stdexcept>

namespace macadam::test {
namespace {

using base::Threads;

constexpr std::size_t mask_bytes = 4096 / 8;
const Threads usable = {7, 2000, 2001, 2003};
Threads set_by_last; // what sched_setaffinity() was given
bool tells = true;

} // namespace
} // namespace macadam::test

// As the kernel has them: a mask to read into may not be shorter than its own.
extern "C" int sched_getaffinity(pid_t, std::size_t bytes, cpu_set_t* mask) noexcept {
  if (bytes < macadam::test::mask_bytes || !macadam::test::tells) {
    errno = EINVAL;
    return -1;
  }
  std::memset(mask, 0, bytes);
  for (const unsigned thread : macadam::test::usable)
    CPU_SET_S(thread, bytes, mask);
  return 0;
}

extern "C" int sched_setaffinity(pid_t, std::size_t bytes, const cpu_set_t* mask) noexcept {
  macadam::test::set_by_last.clear();
  for (unsigned thread = 0; thread < 8 * bytes; ++thread)
    if (CPU_ISSET_S(thread, bytes, mask)) macadam::test::set_by_last.push_back(thread);
  return 0;
}

namespace macadam::test {
namespace {

TEST(Binding, knows_threads_beyond_a_cpu_set) {
  EXPECT_EQ(base::usable_threads(), usable);
}

TEST(Binding, sets_threads_beyond_a_cpu_set) {
  for (const Threads& threads : {Threads{2003}, Threads{7, 2000}, Threads{4095}, Threads{1023}}) {
    base::run_on(threads);
    EXPECT_EQ(set_by_last, threads);
  }
}

// Of threads that this machine has no files of, each is a core.
TEST(Binding, gives_each_rank_a_part) {
  const auto sets = tools::bind_ranks(tools::Binding::core, 4);
  ASSERT_EQ(sets.size(), 4u);
  for (std::size_t rank = 0; rank < sets.size(); ++rank)
    EXPECT_EQ(sets[rank], Threads{usable[rank]});
  EXPECT_THROW((void)tools::bind_ranks(tools::Binding::core, 5), std::runtime_error);
}

TEST(Binding, is_described) {
  constexpr std::array<std::uint32_t, 2> ranks = {3, 8};
  EXPECT_EQ(tools::describe_bindings({{2000, 2001, 2003}, {7}}, ranks, " on host a"),
            "mpiexec: rank 3 runs on hardware threads 2000 to 2001, 2003 on host a\n"
            "mpiexec: rank 8 runs on hardware thread 7 on host a\n");
  EXPECT_EQ(tools::describe_bindings({}, ranks),
            "mpiexec: all 2 ranks run on any of the hardware threads 7, 2000 to 2001, 2003\n");
}

TEST(Binding, says_if_nothing_is_known) {
  tells = false;
  EXPECT_THROW((void)tools::bind_ranks(tools::Binding::core, 1), std::runtime_error);
  tells = true;
}

} // namespace
} // namespace macadam::test
