// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/level_tuning.h"

#include "tools/macadam/command.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>

namespace macadam::tools {
namespace {

constexpr std::int64_t no_bytes = -1;
constexpr std::int64_t any_bytes = std::numeric_limits<std::int64_t>::max();
// A tie is for two levels, which put fewer bytes between machines.
constexpr double patience = 1.03;
// Vectors of so many bytes stand for all longer ones.
constexpr std::int64_t long_vector = 1 << 20;

// One collective's times.
class Times {
 public:
  Times(std::span<const LevelTimes> all, const std::string& collective) {
    for (const LevelTimes& each : all) {
      if (each.collective != collective) continue;
      of_[{each.per_machine, each.bytes}] = &each;
      widths_.insert(each.per_machine);
      sizes_.insert(each.bytes);
    }
  }
  [[nodiscard]] const std::set<int>& widths() const { return widths_; }
  // A size as rules have it.
  [[nodiscard]] std::string name(std::int64_t bytes) const {
    const bool stands_for_all = bytes == *sizes_.rbegin() && (bytes == 0 || bytes >= long_vector);
    return stands_for_all ? "any" : std::to_string(bytes);
  }
  // The last size, and all between `first` and it, at which `algorithm` is nowhere slower than one
  // level, from `width` ranks of a machine on; `first` if there is none.
  [[nodiscard]] std::int64_t limit(const std::string& algorithm, std::int64_t first,
                                   int width) const {
    return last(first, width, [&](const LevelTimes& times) {
      return times.two_levels.at(algorithm) <= patience * times.one_level;
    });
  }
  // ... at which it is faster than another one where a machine has most ranks.
  [[nodiscard]] std::int64_t faster(const std::string& algorithm, const std::string& other) const {
    return last(no_bytes, *widths_.rbegin(), [&](const LevelTimes& times) {
      return times.two_levels.at(algorithm) <= times.two_levels.at(other);
    });
  }
  [[nodiscard]] std::vector<std::string> algorithms() const {
    std::vector<std::string> names;
    for (const auto& [name, time] : of_.begin()->second->two_levels)
      names.push_back(name);
    return names; // leaders before slices
  }

 private:
  template <class Holds>
  [[nodiscard]] std::int64_t last(std::int64_t first, int width, Holds holds) const {
    std::int64_t found = first;
    for (const std::int64_t bytes : sizes_) {
      if (bytes <= first) continue;
      for (const int more : widths_)
        if (more >= width && !holds(*of_.at({more, bytes}))) return found;
      found = bytes;
    }
    return found;
  }

  std::map<std::pair<int, std::int64_t>, const LevelTimes*> of_;
  std::set<int> widths_;
  std::set<std::int64_t> sizes_;
};

// The lines of one collective: by each algorithm in turn, the more ranks a machine has the farther.
std::string lines_of(const std::string& collective, const Times& times) {
  std::string lines;
  std::map<int, std::int64_t> reached; // by the algorithms before, by ranks of a machine
  for (const int width : times.widths())
    reached[width] = no_bytes;
  const std::vector<std::string> algorithms = times.algorithms();
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const std::int64_t most =
        i + 1 < algorithms.size() ? times.faster(algorithms[i], algorithms[i + 1]) : any_bytes;
    std::int64_t before = no_bytes;
    for (auto& [width, at] : reached) {
      const std::int64_t limit = std::min(times.limit(algorithms[i], at, width), most);
      if (limit <= at) continue;
      at = limit;
      if (limit <= before) continue; // by the line of fewer ranks
      before = limit;
      lines += fmt::format("{}{} {} {} {}", lines.empty() ? "" : ", ", collective, algorithms[i],
                           times.name(limit), width);
    }
  }
  return lines;
}

// A run of the simulator, without its pattern.
std::vector<std::string> simulation(const std::string& network, int ranks) {
  const auto folder = std::filesystem::canonical("/proc/self/exe").parent_path();
  return {folder / "macadam-simulate", "--json", "--quiet", "--preset", network, "--ranks",
          std::to_string(ranks)};
}

} // namespace

void check_network(const std::string& network) {
  std::vector<std::string> command = simulation(network, 2);
  command.emplace_back("pattern:barrier");
  output_of(command);
}

std::string choose_levels(std::span<const LevelTimes> all) {
  std::vector<std::string> collectives;
  for (const LevelTimes& each : all)
    if (std::ranges::find(collectives, each.collective) == collectives.end())
      collectives.push_back(each.collective);
  std::string rules;
  for (const std::string& collective : collectives) {
    const std::string lines = lines_of(collective, Times(all, collective));
    rules += (rules.empty() || lines.empty() ? "" : ", ") + lines;
  }
  return rules.empty() ? "none" : rules;
}

std::vector<LevelTimes> measure_levels(const std::string& network, const std::string& change,
                                       bool quick) {
  constexpr int machines = 8;
  const std::vector<int> widths = quick ? std::vector{2, 4} : std::vector{2, 4, 8, 16};
  std::vector<LevelTimes> times;
  for (const int width : widths) {
    std::vector<std::string> command = simulation(network, machines * width);
    command.insert(command.end(), {"--stack", "128", "--ranks-per-node", std::to_string(width)});
    if (!change.empty()) command.insert(command.end(), {"--change", change});
    command.emplace_back("pattern:rules");
    if (quick) command.emplace_back("only=barrier");
    const auto answer = nlohmann::json::parse(output_of(command));
    for (const auto& row : answer.at("rows")) {
      LevelTimes each{row.at("what"), width, row.at("bytes"), row.at("one_level_us"), {}};
      for (const char* const algorithm : {"leaders", "slices"})
        if (const auto found = row.find(std::string(algorithm) + "_us"); found != row.end())
          each.two_levels[algorithm] = *found;
      times.push_back(std::move(each));
    }
  }
  return times;
}

double copy_mb_per_s() {
  constexpr std::size_t bytes = std::size_t{64} << 20; // beyond the caches
  constexpr int times = 5;
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
  double best = 0;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(bytes) / 1e6 / taken.count());
  }
  return best;
}

} // namespace macadam::tools
