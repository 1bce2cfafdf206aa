// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/instance.h"
#include "mpi/library.h"
#include "mpi/world.h"

#include <atomic>
#include <optional>

namespace macadam::mpi {

// Everything one MPI process is. One in a program; many in the simulator, where the scheduler sets
// `running` and `standing` before it runs a rank.
class Process final : public Library {
 public:
  // From the first need of a network on. After its last user it may stay for a while, asleep.
  std::optional<Instance> instance;
  World world;
  bool ending = false; // the last user waits in MPI_Finalize, without the lock
};

// The one entry to the library. `running` is the process while it has users and its instance runs,
// else null: what every entry point that may need a network looks at first. Threads may be the
// first to need one at once, as they may be the first to call anything.
extern std::atomic<Process*> running;

// The process for functions that may be called at any time; made at the first use, unless the
// simulator has set it.
extern std::atomic<Process*> standing;
[[gnu::cold]] Process& begin_to_stand();
inline Process& anytime() {
  Process* const process = standing.load(std::memory_order_acquire);
  return process != nullptr ? *process : begin_to_stand();
}

} // namespace macadam::mpi
