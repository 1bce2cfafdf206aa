// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/descendants.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto longest = 2s; // a killed process can be slow to end when the disk is
constexpr auto nap = 1ms;

bool has_children() {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// False if there is none that we may kill.
bool kill_children() {
  std::ifstream children("/proc/thread-self/children");
  bool any = false;
  for (pid_t child = 0; children >> child;)
    any = kill(child, SIGKILL) == 0 || any;
  return any;
}

} // namespace

Descendants::Descendants() : ours_(!has_children()) {
  if (ours_) prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void Descendants::end() const {
  if (!ours_) return;
  // The children of one that ends become ours.
  for (const auto deadline = std::chrono::steady_clock::now() + longest;
       kill_children() && std::chrono::steady_clock::now() < deadline;
       std::this_thread::sleep_for(nap)) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

} // namespace macadam::tools
