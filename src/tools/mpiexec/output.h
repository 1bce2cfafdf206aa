// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/ranks.h"

#include <poll.h>
#include <string>
#include <vector>

namespace macadam::tools {

// Writes everything to a descriptor of mpiexec's own. If nobody reads it any more, mpiexec ends as
// any filter does (SIGPIPE).
void write_all(int fd, const std::string& text);

// The -l option: takes the ranks' output and writes it on, every line with its rank before it.
// Lines are written whole, so those of different ranks never mix; one longer than 1 MiB is cut.
class LabelledOutput {
 public:
  LabelledOutput() = default;
  LabelledOutput(const LabelledOutput&) = delete;
  LabelledOutput& operator=(const LabelledOutput&) = delete;
  ~LabelledOutput();

  // Makes the pipes of one rank and puts their writing ends into `streams`, for the caller to close
  // once the rank has started. Throws std::system_error.
  void add(int rank, Streams& streams);

  // Appends what to poll, and takes the answer: as many entries from `first` on.
  void list(std::vector<pollfd>& polled) const;
  void take(const pollfd* first);
  // Takes what is left, without waiting for more.
  void drain();

 private:
  struct Pipe {
    int fd;     // the reading end; -1 at the end of the stream
    int target; // 1 or 2
    std::string label;
    std::string line; // begun and not ended
  };

  // Reads once; false if there was nothing.
  static bool read_some(Pipe& pipe);

  std::vector<Pipe> pipes_;
};

} // namespace macadam::tools
