// SPDX-License-Identifier: BSD-3-Clause
// A rank is killed inside its epoch, while it holds a lock that all others wait for: the job ends
// with an error, soon, instead of waiting for ever. The argument says in which kind of epoch.
//
// mpiexec would end the others at once, whatever their calls do. So it is stopped for a while, in
// which these may fail (the launcher then names the rank that was killed) or wait, but not succeed.
#include "rma/window.h"

#include <csignal>
#include <unistd.h>

namespace {

constexpr unsigned alone_us = 400'000;

[[noreturn]] void die() {
  const pid_t launcher = getppid();
  const pid_t waker = fork();
  CHECK(waker >= 0);
  if (waker == 0) {
    usleep(alone_us);
    kill(launcher, SIGCONT);
    _exit(0);
  }
  kill(launcher, SIGSTOP);
  std::raise(SIGKILL);
  std::abort();
}

// The rank that is gone cannot have done its part: no exit status that the launcher makes of it may
// hide this.
void wrong(const char* what) {
  std::fprintf(stderr, "rank %d: %s without the rank that was killed\n", check::rank, what);
  kill(getppid(), SIGABRT);
  kill(getppid(), SIGCONT);
}

void in_lock(MPI_Win win, bool dies) {
  if (dies) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (dies) {
    usleep(100'000); // the others wait by now
    die();
  }
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  wrong("the lock was given");
}

void in_fence(MPI_Win win, bool dies) {
  const int value = check::rank;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_INT, 0, check::rank, 1, MPI_INT, win));
  if (dies) die();
  OK(MPI_Win_fence(0, win));
  wrong("the fence was passed");
}

void in_group(MPI_Win win, bool dies) {
  const int value = check::rank;
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Win_post(world, 0, win));
  OK(MPI_Win_start(world, 0, win));
  OK(MPI_Put(&value, 1, MPI_INT, 0, check::rank, 1, MPI_INT, win));
  if (dies) die();
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));
  wrong("the exposure ended");
}

} // namespace

int main(int argc, char** argv) {
  OK(MPI_Init(nullptr, nullptr));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &check::size));
  const std::string epoch = argc > 1 ? argv[1] : "lock";
  int* memory = nullptr;
  MPI_Win win;
  OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  const bool dies = check::rank == check::size - 1;
  if (epoch == "lock")
    in_lock(win, dies);
  else if (epoch == "fence")
    in_fence(win, dies);
  else
    in_group(win, dies);
  return 0; // not reached
}
