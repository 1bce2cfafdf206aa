// SPDX-License-Identifier: BSD-3-Clause
#include "boot/job_report.h"

#include "boot/job_summary.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>

namespace macadam::boot {
namespace {

using Json = nlohmann::json;

// One number over all ranks.
struct Spread {
  std::string text;
  std::uint64_t total = 0, least = UINT64_MAX, most = 0;
  std::size_t ranks = 0;

  void add(std::uint64_t value) {
    total += value;
    least = std::min(least, value);
    most = std::max(most, value);
    ++ranks;
  }
};

// Rows under headings, both in the order of their first appearance.
class Table {
 public:
  Spread& row(const std::string& group, const std::string& name) {
    auto found = std::find_if(groups_.begin(), groups_.end(),
                              [&](const Group& g) { return g.name == group; });
    if (found == groups_.end()) found = groups_.insert(groups_.end(), Group{group, {}, {}});
    const auto [place, is_new] = found->rows.try_emplace(name);
    if (is_new) found->order.push_back(name);
    return place->second;
  }

  // `show` gives a value its unit. Rows that are zero everywhere say nothing and are left out.
  template <class Show>
  void print(std::string& page, const Show& show) const {
    for (const Group& group : groups_) {
      bool headed = false;
      for (const std::string& name : group.order) {
        const Spread& row = group.rows.at(name);
        if (row.total == 0) continue;
        if (!headed)
          page += fmt::format("\n  {:<24}{:>14}{:>14}{:>14}\n", group.name, "job", "least rank",
                              "most rank");
        headed = true;
        page +=
            fmt::format("    {:<22}{:>14}{:>14}{:>14}{}{}\n", name, show(row.total),
                        show(row.least), show(row.most), row.text.empty() ? "" : "   ", row.text);
      }
    }
  }

 private:
  struct Group {
    std::string name;
    std::vector<std::string> order;
    std::map<std::string, Spread> rows;
  };
  std::vector<Group> groups_;
};

// Sentences, each with the ranks that said it.
using Sentences = std::map<std::string, std::vector<int>>;

// "ranks 0 to 3, 7"
std::string show_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = ++last) {
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    if (first > 0) text += ", ";
    text += std::to_string(ranks[first]);
    if (last > first) text += (last == first + 1 ? ", " : " to ") + std::to_string(ranks[last]);
  }
  return text;
}

void print_sentences(std::string& page, const char* heading, const Sentences& sentences,
                     std::size_t ranks) {
  if (!sentences.empty()) page += fmt::format("\n  {}\n", heading);
  for (const auto& [sentence, who] : sentences)
    page += fmt::format("    {}{}\n", sentence,
                        who.size() == ranks ? "" : fmt::format(" ({})", show_ranks(who)));
}

std::string show_count(std::uint64_t value) {
  return std::to_string(value);
}

// What all ranks said together.
struct Sum {
  Table counters, memory;
  Sentences transports, fallbacks, settings;
  std::map<std::string, int> hosts;

  void add(const Json& report, int rank);
};

void Sum::add(const Json& report, int rank) {
  ++hosts[report.value("host", "an unnamed host")];
  for (const Json& counter : member(report, "counters")) {
    Spread& row = counters.row(counter.value("group", ""), counter.value("name", "?"));
    row.text = counter.value("text", "");
    row.add(counter.value("value", std::uint64_t{0}));
  }
  for (const auto& [name, bytes] : member(report, "memory").items())
    memory.row("memory", name).add(bytes.get<std::uint64_t>());
  for (const Json& line : member(report, "transports"))
    transports[line.get<std::string>()].push_back(rank);
  for (const Json& line : member(report, "fallbacks"))
    fallbacks[line.get<std::string>()].push_back(rank);
  for (const auto& [name, value] : member(report, "settings").items())
    settings[fmt::format("{}={}", name,
                         value.is_string() ? value.get<std::string>() : value.dump())]
        .push_back(rank);
}

} // namespace

std::string job_report(const std::vector<std::string>& ranks, const std::string& job) {
  Sum sum;
  std::vector<Json> whole;
  std::string damaged;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    try {
      Json report = Json::parse(ranks[i]);
      Sum with_this = sum; // so that a text damaged half way adds nothing
      with_this.add(report, report.value("rank", static_cast<int>(i)));
      job_summary({report});
      sum = std::move(with_this);
      whole.push_back(std::move(report));
    } catch (const Json::exception& e) {
      damaged += fmt::format("\n  report {} could not be read: {}\n", i, e.what());
    }
  }
  const std::size_t read = whole.size();
  std::string page =
      fmt::format("macadam: what {} did: {} rank{}", job, read, read == 1 ? "" : "s");
  for (const auto& [host, count] : sum.hosts)
    page +=
        fmt::format("{} on host {}", sum.hosts.size() == 1 ? "" : fmt::format(", {}", count), host);
  page += "\n" + job_summary(whole);
  sum.counters.print(page, show_count);
  sum.memory.print(page, show_bytes);
  print_sentences(page, "transports", sum.transports, read);
  print_sentences(page, "fallbacks", sum.fallbacks, read);
  print_sentences(page, "settings that differ from the defaults", sum.settings, read);
  return page + damaged;
}

std::string job_report_file(const std::vector<std::string>& ranks) {
  std::string text = R"({"macadam": "report", "ranks": [)";
  for (const std::string& rank : ranks) {
    if (text.back() != '[') text += ",";
    text += "\n" + (Json::accept(rank) ? rank : "{}");
  }
  return text + "\n]}\n";
}

std::string give_report(const std::vector<std::string>& ranks, const std::string& part,
                        const std::string& job) {
  std::string name;
  for (const std::string& rank : ranks) {
    const Json report = Json::parse(rank, nullptr, false);
    if (report.is_object()) name = report.value("file", name);
  }
  if (name.empty()) return job_report(ranks, job);
  if (!part.empty()) name.insert(name.rfind(".json"), "." + part);
  const std::string text = job_report_file(ranks);
  std::ofstream file(name);
  file << text << std::flush;
  const int error = errno; // before others set it
  if (file.good())
    return fmt::format("macadam: the report is in {0}; `macadam report {0}` makes a page of it\n",
                       name);
  return fmt::format("macadam: MACADAM_REPORT={}: cannot be written: {}; here it is\n", name,
                     std::strerror(error)) +
         job_report(ranks, job);
}

} // namespace macadam::boot
