// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/config_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace macadam::tools {
namespace {

bool is_escaped_in_quotes(char c) {
  return c == '$' || c == '`' || c == '"' || c == '\\';
}

// As a shell splits them, without its substitutions.
std::vector<std::string> words_of(const std::string& line, const std::string& place) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool escapes = c == '\\' && i + 1 < line.size() &&
                         (quote == 0 || (quote == '"' && is_escaped_in_quotes(line[i + 1])));
    if (escapes) {
      word += line[++i];
      any = true;
    } else if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote == 0 ? c : '\0';
      any = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\r')) {
      if (any) words.push_back(std::move(word));
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (quote != 0) throw std::runtime_error(fmt::format("{}: a {} is not closed", place, quote));
  if (any) words.push_back(std::move(word));
  return words;
}

bool is_comment(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string::npos && line[first] == '#';
}

// Takes the \ off the end of a line that goes on in the next one.
bool take_continuation(std::string& line) {
  if (line.ends_with('\r')) line.pop_back();
  const std::size_t behind = line.find_last_not_of('\\') + 1; // 0 if there is nothing else
  const bool goes_on = (line.size() - behind) % 2 == 1;       // two are one that is meant
  if (goes_on) line.pop_back();
  return goes_on;
}

std::vector<std::string> read_programs(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> arguments;
  int number = 0;
  for (std::string line, more; std::getline(file, line);) {
    const std::string place = fmt::format("{}:{}", path, ++number);
    if (is_comment(line)) continue;
    for (; take_continuation(line) && std::getline(file, more); ++number)
      line += more;
    const std::vector<std::string> words = words_of(line, place);
    if (words.empty() || words.front().starts_with('#')) continue;
    if (!arguments.empty()) arguments.emplace_back(":");
    arguments.insert(arguments.end(), words.begin(), words.end());
  }
  if (!file.is_open() || file.bad()) // a folder can be opened, but not read
    throw std::runtime_error(fmt::format("-configfile {}: {}", path, std::strerror(errno)));
  if (arguments.empty())
    throw std::runtime_error(
        fmt::format("-configfile {}: there is no program in it; a line for each, such as "
                    "\"-n 2 ./program\"",
                    path));
  return arguments;
}

} // namespace

// It stands alone, as with other launchers: behind it nothing may follow but the next colon.
std::vector<std::string> expand_config_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> expanded;
  bool first = true; // of a program's part
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool asked = word == "-configfile" || word == "--configfile";
    if (first && asked) {
      if (i + 1 == arguments.size()) throw std::runtime_error(word + " needs FILE");
      const std::vector<std::string> programs = read_programs(arguments[++i]);
      expanded.insert(expanded.end(), programs.begin(), programs.end());
      if (i + 1 < arguments.size() && arguments[i + 1] != ":")
        throw std::runtime_error(
            fmt::format("{} {}: \"{}\" stands behind it; all options stand in the file", word,
                        arguments[i], arguments[i + 1]));
    } else {
      expanded.push_back(word);
    }
    first = word == ":";
  }
  return expanded;
}

} // namespace macadam::tools
