// SPDX-License-Identifier: BSD-3-Clause
#include "sim/patterns/pattern.h"

#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace macadam::sim {
namespace {

std::int64_t parse(const std::string& name, std::string_view text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(rest, text.data() + text.size());
  const int shift = suffix == "K" ? 10 : suffix == "M" ? 20 : suffix.empty() ? 0 : -1;
  if (error != std::errc{} || shift < 0 || number < 0)
    base::fail(MPI_ERR_ARG, "parameter {}: found '{}', needed a number (suffixes K, M)", name,
               text);
  return number << shift;
}

} // namespace

Parameters::Parameters(std::span<const std::string> words) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      base::fail(MPI_ERR_ARG, "parameter '{}': needed name=value, for example bytes=64K", word);
    values_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

const std::string* Parameters::find(const std::string& name) {
  asked_[name] = true;
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::int64_t Parameters::number(const std::string& name, std::int64_t otherwise) {
  const std::string* text = find(name);
  return text == nullptr ? otherwise : parse(name, *text);
}

std::vector<std::int64_t> Parameters::numbers(const std::string& name,
                                              std::vector<std::int64_t> otherwise) {
  const std::string* text = find(name);
  if (text == nullptr) return otherwise;
  std::vector<std::int64_t> result;
  std::string_view rest = *text;
  for (;;) {
    const std::size_t colon = rest.find(':');
    result.push_back(parse(name, rest.substr(0, colon)));
    if (colon == std::string_view::npos) return result;
    rest.remove_prefix(colon + 1);
  }
}

std::string Parameters::text(const std::string& name, const std::string& otherwise) {
  const std::string* text = find(name);
  return text == nullptr ? otherwise : *text;
}

void Parameters::all_known() const {
  for (const auto& [name, value] : values_) {
    if (asked_.contains(name)) continue;
    std::vector<std::string> known;
    for (const auto& [other, yes] : asked_)
      known.push_back(other);
    base::fail(MPI_ERR_ARG, "the pattern has no parameter '{}'; it has {}", name,
               known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  }
}

std::span<const Pattern> patterns() {
  static const std::vector<Pattern> all = [] {
    std::vector<Pattern> result;
    for (const auto& part : {collective_patterns(), nas_patterns(), experiment_patterns(),
                             gravel_patterns(), topology_patterns(), level_patterns()})
      result.insert(result.end(), part.begin(), part.end());
    return result;
  }();
  return all;
}

const Pattern& find_pattern(const std::string& name) {
  const auto all = patterns();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Pattern& each) { return each.name == name; });
  if (found != all.end()) return *found;
  std::vector<const char*> names;
  for (const Pattern& each : all)
    names.push_back(each.name);
  base::fail(MPI_ERR_ARG, "there is no pattern '{}'; there are {}", name, fmt::join(names, ", "));
}

} // namespace macadam::sim
