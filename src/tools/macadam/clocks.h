// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace macadam::tools {

// A message between two clocks: when its sender had it sent by the one, and when its receiver saw
// it by the other. Seconds.
struct Crossing {
  std::size_t from = 0, to = 0; // clocks, by number
  double sent = 0, seen = 0;
};

// How a clock is read by the first one's: time = read - (ahead + drift * (read - since)).
struct ClockLine {
  double ahead = 0;
  double drift = 0;
  double since = 0;
  // How far the line can be from the truth, by what the messages there and those back allow; below
  // 0: messages went one way at most, and the time of day decides.
  double within = -1;
  [[nodiscard]] double time(double read) const { return read - (ahead + drift * (read - since)); }
};

// Lines for all clocks. No message can be seen before it is sent: those in one direction say how
// much the one clock is ahead at least, those in the other how much at most, and in the middle
// between the closest of both it is, as if the way there took as long as the way back. Clocks
// drift, so a message says less the longer ago it was. `guesses`: how much each is ahead of the
// first by the time of day.
std::vector<ClockLine> align_clocks(const std::vector<Crossing>& crossings,
                                    const std::vector<double>& guesses);

} // namespace macadam::tools
