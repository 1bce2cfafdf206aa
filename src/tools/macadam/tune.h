// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace macadam::tools {

// What `macadam tune` is asked for.
struct TuneQuestion {
  std::string output; // path; empty: where the library looks
  bool only_print = false;
  bool quick = false; // less exact: for tests
  bool despite_load = false;
  std::string
      network; // for the rules of several machines: a preset of the simulator's, or its file
};

struct TuneAnswer {
  std::string page;  // to print
  std::string error; // why nothing was written although it was asked for; empty if it was
};

// Messages of one size under two protocols, in microseconds.
struct Comparison {
  std::int64_t bytes = 0;
  double smaller = 0; // the protocol for smaller messages
  double larger = 0;  // the one that takes over
};

// The size up to which the protocol for smaller messages should be used: the last one at which, and
// below which, it takes at most `patience` times as long as the other; `least` if it is so at none.
// `comparisons` by size.
std::int64_t choose_threshold(std::span<const Comparison> comparisons, double patience,
                              std::int64_t least);

// Measures this machine and writes the file, if nothing else has run meanwhile. Shows on a terminal
// how far it is. Throws base::Error or std::runtime_error if something cannot be measured or
// written; then the file is as before.
TuneAnswer tune(const TuneQuestion& question);

} // namespace macadam::tools
