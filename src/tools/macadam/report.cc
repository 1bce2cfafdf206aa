// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/report.h"

#include "boot/job_report.h"
#include "boot/job_summary.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace macadam::tools {
namespace {

using Json = nlohmann::json;

constexpr std::string_view place = "@REPORT@"; // of the data, in the form

std::string read(const std::string& name) {
  std::ifstream file(name);
  std::ostringstream text; // what an iterator throws would not name the file
  text << file.rdbuf();
  if (!file || text.bad())
    throw std::runtime_error(name + " cannot be read: " + std::strerror(errno));
  return text.str();
}

// The ranks of a report. Whatever else a JSON file may hold is refused.
std::vector<Json> ranks_in(const std::string& name) {
  const std::string text = read(name);
  const Json report = Json::parse(text, nullptr, false);
  if (!report.is_object() || !report.contains("macadam") || !report.contains("ranks") ||
      !report["ranks"].is_array())
    throw std::runtime_error(name +
                             " is no report; MACADAM_REPORT=NAME.json mpiexec ... writes one");
  return report["ranks"];
}

// Inside a script element a `<` could end it, whatever names the program has given.
std::string inside_script(const Json& data) {
  std::string text;
  for (const char c : data.dump())
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

} // namespace

std::string report(const ReportQuestion& question, const std::string& page) {
  const std::vector<Json> ranks = ranks_in(question.file);
  if (question.text) {
    std::vector<std::string> texts;
    for (const Json& rank : ranks)
      texts.push_back(rank.dump());
    return boot::job_report(texts);
  }
  std::string html = read(page);
  const std::size_t at = html.find(place);
  if (at == std::string::npos)
    throw std::runtime_error(page + " is damaged: no " + std::string(place));
  try {
    html.replace(at, place.size(),
                 inside_script({{"ranks", ranks}, {"advice", boot::job_advice(ranks)}}));
  } catch (const Json::exception& error) {
    throw std::runtime_error(question.file + " is damaged: " + error.what());
  }
  const std::string output =
      question.output.empty()
          ? std::filesystem::path(question.file).replace_extension(".html").string()
          : question.output;
  std::ofstream file(output);
  file << html << std::flush;
  if (!file) throw std::runtime_error(output + " cannot be written: " + std::strerror(errno));
  return "The page is in " + output + "; open it with a browser.\n";
}

} // namespace macadam::tools
