// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <chrono>
#include <optional>
#include <string>

namespace macadam::tools {

// The other machines of a job, as mpiexec sees them on this one. On clusters ranks will learn of
// each other by PMIx, without mpiexec; what this is for are tests over several machines, which
// bring the only implementation (tests/nodes).
class Neighbours {
 public:
  // Why the job has failed: who (rank and host) did what, and mpiexec's exit status.
  struct Failure {
    std::string sentence;
    int status = 1;
  };

  // Tells the others how this machine's ranks stand and writes into `memory` how theirs do:
  // addresses, states, failures, and the end of a barrier when all machines have arrived. Returns
  // after how long to call it again at the latest.
  virtual std::chrono::milliseconds exchange(boot::JobMemory& memory) = 0;
  // The job has failed here; the next exchange() tells. Later failures follow from the first.
  virtual void tell_failure(const Failure& failure) = 0;
  // ... elsewhere.
  [[nodiscard]] virtual const std::optional<Failure>& failure() const = 0;

 protected:
  ~Neighbours() = default;
};

} // namespace macadam::tools
