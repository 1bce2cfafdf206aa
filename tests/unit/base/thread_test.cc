// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <pthread.h>
#include <string>

namespace macadam::base {
namespace {

// The kernel's flags of the mapping that holds `address`.
std::string flags_of(std::uintptr_t address) {
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find('-');
    if (line.find_first_not_of("0123456789abcdef") == dash && dash != line.npos)
      inside = std::stoull(line, nullptr, 16) <= address &&
               address < std::stoull(line.substr(dash + 1), nullptr, 16);
    if (inside && line.starts_with("VmFlags:")) return line + ' ';
  }
  return "";
}

// Kernels from 6.7 on do so with every thread's stack: in the virtual machine there is an older
// one.
TEST(Thread, HasItsNameNoSignalsAndAStackOfSmallPages) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::string name(16, '\0'), flags;
  sigset_t blocked;
  std::thread thread = start_thread("macadam-test", [&] {
    pthread_getname_np(pthread_self(), name.data(), name.size());
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    flags = flags_of(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  });
  thread.join();
  EXPECT_STREQ(name.c_str(), "macadam-test");
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGALRM), 1);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < NSIG; ++signal)
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  if (std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good()) {
    EXPECT_NE(flags.find(" nh "), flags.npos) << flags;
  }
}

} // namespace
} // namespace macadam::base
