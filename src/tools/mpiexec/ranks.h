// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/affinity.h"
#include "boot/job_memory.h"
#include "boot/limits.h"
#include "tools/mpiexec/options.h"

#include <csignal>
#include <string>
#include <sys/types.h>
#include <vector>

namespace macadam::tools {

// Where a rank's standard streams lead; -1: where mpiexec's own do. Or to files, if they have
// names.
struct Streams {
  int in = -1, out = -1, error = -1;
  OutputFiles files = {};
};

// The names that patterns stand for.
OutputFiles name_files(const OutputFiles& patterns, const std::string& rank,
                       const std::string& host);

// A process beside mpiexec that gives the job its process group and survives only as long as
// mpiexec: it sleeps in read() on a pipe that mpiexec alone can write, and when that ends, it kills
// the group. So neither ranks nor what they started remain when mpiexec is killed.
class Watchdog {
 public:
  // Throws std::system_error.
  Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  // Kills what is left of the group, the watchdog too.
  ~Watchdog();

  [[nodiscard]] pid_t group() const { return pid_; }
  void signal_group(int number) const { kill(-pid_, number); }

 private:
  pid_t pid_;
  int pipe_;
};

// Where the processes of a job wait until all of them are there, and how mpiexec learns that each
// has become its program, or has not: both are ends of pipes.
struct Gate {
  int reading_end = -1; // at its end they go on
  int writing_end = -1; // mpiexec's
  int started = -1;     // closed on exec: at the end of all copies all have started
};

// What is common to all ranks that start() starts.
struct Start {
  const std::vector<Variable>& environment; // of all ranks
  const boot::JobMemory& memory;
  int descriptor; // of the memory in the ranks
  const Watchdog& watchdog;
  const sigset_t& signal_mask;                 // of the ranks: the one mpiexec was started with
  const std::vector<base::Threads>& core_sets; // empty: not bound
  Gate gate = {};
};

// Starts one rank and returns its process id. Whether its program could be started is seen when it
// ends: RankRow::start_error. Throws std::system_error.
pid_t start_rank(const Start& start, const Program& program, int rank, const Streams& streams);

// What an mpiexec needs that starts so many; `piped`: their output goes through it.
[[nodiscard]] boot::Needs needs_of(int ranks, bool piped);

} // namespace macadam::tools
