// SPDX-License-Identifier: BSD-3-Clause
// How signals are handled is the program's affair: nothing that MPI loads changes it.
#include "check.h"

#include <csignal>
#include <vector>

namespace {

struct Handling {
  struct sigaction action;
  int error = 0;
};

std::vector<Handling> handling() {
  std::vector<Handling> all(NSIG);
  for (int signal = 1; signal < NSIG; ++signal)
    all[static_cast<std::size_t>(signal)].error =
        sigaction(signal, nullptr, &all[static_cast<std::size_t>(signal)].action);
  return all;
}

std::vector<Handling> before;
constexpr int flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER | SA_RESETHAND |
                      SA_NOCLDSTOP | SA_NOCLDWAIT; // that a program sets

void stays() {
  const std::vector<Handling> now = handling();
  for (std::size_t signal = 1; signal < now.size(); ++signal) {
    CHECK_EQUAL(now[signal].error, before[signal].error);
    if (now[signal].error != 0) continue;
    CHECK_EQUAL(now[signal].action.sa_handler == before[signal].action.sa_handler, true);
    CHECK_EQUAL(now[signal].action.sa_flags & flags, before[signal].action.sa_flags & flags);
  }
}

volatile std::sig_atomic_t handled = 0;

void is_handled() {
  OK(MPI_Barrier(MPI_COMM_WORLD)); // whoever is connected
  CHECK_EQUAL(raise(SIGTERM), 0);
  CHECK_EQUAL(handled, SIGTERM);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

} // namespace

int main(int argc, char** argv) {
  std::signal(SIGTERM, [](int signal) { handled = signal; });
  before = handling();
  return check::run(argc, argv, {{"stays", stays}, {"is_handled", is_handled}});
}
