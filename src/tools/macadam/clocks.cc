// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/clocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace macadam::tools {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t stretches = 16; // of the time, of which each has bounds of its own

struct Bounds {
  double least = -infinite, most = infinite;
  [[nodiscard]] bool closed() const { return least > -infinite && most < infinite; }
};

// How much clock `b` is ahead of clock `a`, by the clock of `b`, from their messages: pairs of the
// reading of `b` and a bound, that of messages from `a` an upper one.
struct Pair {
  std::vector<std::pair<double, double>> upper, lower;
};

ClockLine line_of(const Pair& pair, double guess) {
  double first = infinite, last = -infinite;
  for (const auto* side : {&pair.upper, &pair.lower})
    for (const auto& [read, bound] : *side) {
      first = std::min(first, read);
      last = std::max(last, read);
    }
  std::array<Bounds, stretches> bounds;
  Bounds all;
  const auto stretch = [&](double read) -> Bounds& {
    const double part = last > first ? (read - first) / (last - first) : 0;
    return bounds[std::min(stretches - 1, static_cast<std::size_t>(part * stretches))];
  };
  for (const auto& [read, bound] : pair.upper) {
    stretch(read).most = std::min(stretch(read).most, bound);
    all.most = std::min(all.most, bound);
  }
  for (const auto& [read, bound] : pair.lower) {
    stretch(read).least = std::max(stretch(read).least, bound);
    all.least = std::max(all.least, bound);
  }
  if (!all.closed()) return {.ahead = std::clamp(guess, all.least, std::max(all.least, all.most))};
  // The line through the middles, by least squares.
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, within = infinite;
  for (std::size_t i = 0; i < stretches; ++i) {
    if (!bounds[i].closed()) continue;
    const double at = (last - first) * (static_cast<double>(i) + 0.5) / stretches;
    const double middle = (bounds[i].least + bounds[i].most) / 2;
    within = std::min(within, std::abs(bounds[i].most - bounds[i].least) / 2);
    n += 1;
    x += at;
    y += middle;
    xx += at * at;
    xy += at * middle;
  }
  if (n == 0) // nowhere both ways: over the whole run
    return {.ahead = (all.least + all.most) / 2, .within = std::abs(all.most - all.least) / 2};
  const double spread = n * xx - x * x;
  const double drift = n < 3 || spread <= 0 ? 0 : (n * xy - x * y) / spread;
  return {.ahead = (y - drift * x) / n, .drift = drift, .since = first, .within = within};
}

} // namespace

std::vector<ClockLine> align_clocks(const std::vector<Crossing>& crossings,
                                    const std::vector<double>& guesses) {
  const std::size_t clocks = guesses.size();
  std::vector<std::optional<ClockLine>> lines(clocks);
  if (clocks != 0) lines[0] = ClockLine{.within = 0};
  // From those that are known to those that have most messages with them.
  for (std::size_t known = 1; known < clocks; ++known) {
    std::map<std::size_t, Pair> pairs; // by the clock that is not known
    for (const Crossing& crossing : crossings) {
      if (lines[crossing.from].has_value() == lines[crossing.to].has_value()) continue;
      if (lines[crossing.from]) {
        const double sent = lines[crossing.from]->time(crossing.sent);
        pairs[crossing.to].upper.emplace_back(crossing.seen, crossing.seen - sent);
      } else {
        const double seen = lines[crossing.to]->time(crossing.seen);
        pairs[crossing.from].lower.emplace_back(crossing.sent, crossing.sent - seen);
      }
    }
    if (pairs.empty()) break;
    const auto weight = [](const auto& entry) {
      return std::min(entry.second.upper.size(), entry.second.lower.size());
    };
    const auto best = std::ranges::max_element(pairs, {}, weight);
    lines[best->first] = line_of(best->second, guesses[best->first]);
  }
  std::vector<ClockLine> result;
  for (std::size_t clock = 0; clock < clocks; ++clock)
    result.push_back(lines[clock].value_or(ClockLine{.ahead = guesses[clock]}));
  return result;
}

} // namespace macadam::tools
