// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "sim/scheduler.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace macadam::sim {

// What the ranks of a program compute between their calls: measured by the processor time of this
// thread, or repeated from a file that an earlier run has written. Times are those of the machine
// that measured them; Model::compute_factor makes them the simulated one's.
//
// A time belongs to its rank and to the place in the program, that is from which call it was
// computed to which. A run from a file takes the times of a place in their order; where the program
// comes to a place more often than it did (it polls, and time is another) it takes the last again.
class ComputeTimes {
 public:
  enum class Mode : std::uint8_t { measure, repeat };
  // To measure, or the times of a file. Throws base::Error (MPI_ERR_ARG) if it cannot be read or
  // is of another number of ranks.
  explicit ComputeTimes(int ranks) : ranks_(ranks), mode_(Mode::measure) {}
  ComputeTimes(const std::string& path, int ranks);

  [[nodiscard]] bool measures() const { return mode_ == Mode::measure; }
  // How long `rank` has computed, from the place `from` to the place `to`, if `measured` is what it
  // took now; a measurement is kept.
  Time between(int rank, std::uint64_t from, std::uint64_t to, Time measured);

  // Writes what was measured, smoothed: the times of a rank and place are put in groups, each of
  // those up to twice the least that is left, and become the median of their group. So the
  // machine's own unrest goes, and the different work that a place may have remains. Throws
  // base::Error (MPI_ERR_OTHER) if it cannot be written.
  void write(const std::string& path) const;

  // Times that a file did not have: of places where the program had not been.
  [[nodiscard]] std::uint64_t missing() const { return missing_; }

  // Processor time of this thread, and what it takes to ask for it.
  static Time now();
  static Time cost_of_now();

 private:
  struct Place {
    std::vector<Time> times;
    std::size_t next = 0;
  };
  using Key = std::tuple<int, std::uint64_t, std::uint64_t>; // rank, from, to
  std::map<Key, Place> places_;
  int ranks_;
  Mode mode_;
  std::uint64_t missing_ = 0;
};

} // namespace macadam::sim
