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
constexpr std::size_t points = 16;    // of the time, of which each has bounds of its own
constexpr double most_drift = 500e-6; // what NTP corrects (RFC 5905), and more than crystals do
constexpr double resolution = 1e-9;

struct Bounds {
  double least = -infinite, most = infinite;
  [[nodiscard]] double middle() const { return (least + most) / 2; }
  [[nodiscard]] double half() const { return std::abs(most - least) / 2; }
};

// How much clock `b` is ahead of clock `a`, by the clock of `b`, from their messages: pairs of the
// reading of `b` and a bound, that of messages from `a` an upper one.
struct Pair {
  std::vector<std::pair<double, double>> upper, lower;
  double within = 0; // of the clock of `a`, or of the worst of several
};

// By every message, as clocks drift by `drift` at most.
Bounds bounds_at(const Pair& pair, double time, double drift) {
  Bounds bounds;
  for (const auto& [read, bound] : pair.upper)
    bounds.most = std::min(bounds.most, bound + drift * std::abs(time - read));
  for (const auto& [read, bound] : pair.lower)
    bounds.least = std::max(bounds.least, bound - drift * std::abs(time - read));
  return bounds;
}

// The line through the middles, by least squares, in which narrow bounds weigh more.
ClockLine line_of(const Pair& pair, double guess) {
  double first = infinite, last = -infinite;
  for (const auto* side : {&pair.upper, &pair.lower})
    for (const auto& [read, bound] : *side) {
      first = std::min(first, read);
      last = std::max(last, read);
    }
  if (pair.upper.empty() || pair.lower.empty()) {
    const Bounds all = bounds_at(pair, first, 0);
    return {.ahead = std::clamp(guess, all.least, std::max(all.least, all.most))};
  }
  std::array<Bounds, points> bounds;
  const auto at = [&](std::size_t i) {
    return (last - first) * static_cast<double>(i) / (points - 1);
  };
  for (std::size_t i = 0; i < points; ++i)
    bounds[i] = bounds_at(pair, first + at(i), most_drift);
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < points; ++i) {
    const double weight = 1 / std::pow(std::max(bounds[i].half(), resolution), 2);
    n += weight;
    x += weight * at(i);
    y += weight * bounds[i].middle();
    xx += weight * at(i) * at(i);
    xy += weight * at(i) * bounds[i].middle();
  }
  const double spread = n * xx - x * x;
  const double drift =
      spread <= 0 ? 0 : std::clamp((n * xy - x * y) / spread, -most_drift, most_drift);
  ClockLine line{.ahead = (y - drift * x) / n, .drift = drift, .since = first, .within = 0};
  for (std::size_t i = 0; i < points; ++i)
    line.within = std::max(line.within, std::abs(line.ahead + drift * at(i) - bounds[i].middle()) +
                                            bounds[i].half());
  line.within += pair.within;
  return line;
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
      const bool forth = lines[crossing.from].has_value();
      Pair& pair = pairs[forth ? crossing.to : crossing.from];
      pair.within = std::max(pair.within, lines[forth ? crossing.from : crossing.to]->within);
      if (forth) {
        const double sent = lines[crossing.from]->time(crossing.sent);
        pair.upper.emplace_back(crossing.seen, crossing.seen - sent);
      } else {
        const double seen = lines[crossing.to]->time(crossing.seen);
        pair.lower.emplace_back(crossing.sent, crossing.sent - seen);
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
