// SPDX-License-Identifier: BSD-3-Clause
#include "coll/level_rules.h"

#include "base/error.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <optional>
#include <sstream>
#include <string_view>

namespace macadam::coll {
namespace {

[[noreturn]] void refuse(const std::string& line, const std::string& needed) {
  base::fail(MPI_ERR_ARG, "levels: found '{}', needed {}", line, needed);
}

// "4096", "4K", "1M", "any".
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  if (text == "any") return UINT64_MAX;
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const int shift = suffix == "K" ? 10 : suffix == "M" ? 20 : suffix.empty() ? 0 : -1;
  if (error != std::errc{} || shift < 0 || number > UINT32_MAX) return std::nullopt;
  return number << shift;
}

Kind parse_kind(const std::string& line, const std::string& word) {
  std::string known;
  for (int i = 0; i < kinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    const bool has_levels = std::ranges::any_of(algorithms_of(kind), is_on_levels);
    if (has_levels && word == name(kind)) return kind;
    if (has_levels) known += (known.empty() ? "" : ", ") + std::string(name(kind));
  }
  refuse(line, "one of " + known);
}

Algorithm parse_algorithm(const std::string& line, Kind kind, const std::string& word) {
  std::string known;
  for (const Algorithm algorithm : algorithms_of(kind)) {
    if (!is_on_levels(algorithm)) continue;
    if (word == name(algorithm)) return algorithm;
    known += (known.empty() ? "" : " or ") + std::string(name(algorithm));
  }
  refuse(line, fmt::format("{} for {}", known, name(kind)));
}

Rule parse_line(const std::string& line) {
  std::istringstream words(line);
  std::string kind_word, algorithm_word, bytes_word, rest;
  int per_machine = 0;
  words >> kind_word >> algorithm_word >> bytes_word >> per_machine;
  const bool has_ranks = !words.fail() && per_machine >= 2;
  const Kind kind = parse_kind(line, kind_word);
  const Algorithm algorithm = parse_algorithm(line, kind, algorithm_word);
  const auto bytes = parse_bytes(bytes_word);
  if (!bytes) refuse(line, "a number of bytes (suffixes K, M) or any, behind the algorithm");
  if (!has_ranks || words >> rest)
    refuse(line, "a number of ranks of a machine, from 2 on, at the end");
  return {kind, INT_MAX, *bytes, algorithm, Among::machines, per_machine};
}

} // namespace

RuleTable::RuleTable(const std::string& levels, engine::MessagesBy by) {
  using engine::MessagesBy;
  if (levels.empty() && by == MessagesBy::adapter) return;
  const bool own_levels = levels.empty() && by == MessagesBy::tcp_alone;
  std::array<std::vector<Rule>, kinds> found;
  std::istringstream lines(levels == "none" || own_levels ? ""
                           : levels.empty()               ? levels_over_tcp
                                                          : levels);
  for (std::string line; std::getline(lines, line, ',');) {
    const Rule rule = parse_line(line);
    found[static_cast<std::size_t>(rule.kind)].push_back(rule);
  }
  // In the place of the library's: behind those for one machine, before all others.
  const Rules& defaults = default_rules();
  constexpr int few_ranks = 8;
  const auto stays = [=](const Rule& rule) {
    const bool straight = rule.algorithm == Algorithm::pieces ||
                          (rule.algorithm == Algorithm::direct && rule.among == Among::frequent &&
                           rule.ranks > few_ranks);
    return (own_levels || !is_on_levels(rule.algorithm)) &&
           !(by != MessagesBy::adapter && straight);
  };
  for (std::size_t kind = 0; kind < own_.size(); ++kind) {
    const auto add = [&](bool of_one_machine) {
      std::ranges::copy_if(defaults[kind], std::back_inserter(own_[kind]), [&](const Rule& rule) {
        return stays(rule) && is_shared(rule.among) == of_one_machine;
      });
    };
    add(true);
    own_[kind].insert(own_[kind].end(), found[kind].begin(), found[kind].end());
    add(false);
  }
}

Rules RuleTable::rules() const {
  if (own_[0].empty()) return default_rules();
  Rules rules;
  std::ranges::copy(own_, rules.begin());
  return rules;
}

void read_levels(const std::string& levels) {
  static_cast<void>(RuleTable(levels));
}

} // namespace macadam::coll
