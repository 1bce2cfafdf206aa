// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::tools {

// What a job has started and what has left the watchdog's process group, by setsid for instance:
// orphans among mpiexec's descendants become its children, and none outlives it. (If mpiexec itself
// is killed, they are init's children, and only the group ends: Watchdog.)
class Descendants {
 public:
  // Before the first child is started. Does nothing if there are children that whoever executed
  // mpiexec has started: theirs could not be told from the job's.
  Descendants();
  // Kills and reaps all that there are, but does not wait for long.
  void end() const;

 private:
  bool ours_;
};

} // namespace macadam::tools
