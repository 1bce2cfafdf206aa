// SPDX-License-Identifier: BSD-3-Clause
// A rank is killed inside its epoch, while it holds a lock that all others wait for: the job ends
// with an error, soon, instead of waiting for ever. The argument says in which kind of epoch.
#include "rma/window.h"

#include <csignal>
#include <unistd.h>

int main(int argc, char** argv) {
  OK(MPI_Init(nullptr, nullptr));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &check::size));
  const std::string epoch = argc > 1 ? argv[1] : "lock";
  int* memory = nullptr;
  MPI_Win win;
  OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
  const int value = check::rank;
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const bool dies = check::rank == check::size - 1;
  if (epoch == "lock") {
    if (dies) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (dies) {
      usleep(100'000); // the others wait by now
      std::raise(SIGKILL);
    }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK(!"the lock was given to two");
  } else if (epoch == "fence") {
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, 0, check::rank, 1, MPI_INT, win));
    if (dies) std::raise(SIGKILL);
    OK(MPI_Win_fence(0, win));
  } else {
    OK(MPI_Win_post(world, 0, win));
    OK(MPI_Win_start(world, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, 0, check::rank, 1, MPI_INT, win));
    if (dies) std::raise(SIGKILL);
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
  }
  OK(MPI_Win_free(&win));
  OK(MPI_Group_free(&world));
  OK(MPI_Finalize()); // not reached: nobody passes MPI_Win_free
  return 0;
}
