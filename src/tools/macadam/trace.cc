// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/trace.h"

#include "boot/trace_file.h"
#include "tools/macadam/clocks.h"
#include "tools/macadam/timeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

namespace macadam::tools {
namespace {

using boot::TraceRecord;

// When it began and ended by the time of day, as far as the clocks of machines agree in that.
struct Span {
  double begun, ended;
};

Span span_of(const RankTrace& rank) {
  double begun = rank.now;
  for (const TraceRecord& record : rank.records)
    begun = std::min(begun, record.at);
  return {rank.wall - (rank.now - begun), rank.wall};
}

// The job that ended last and all that ran at the same time as one of these.
std::vector<RankTrace> newest_run(std::vector<RankTrace> all) {
  std::map<std::uint32_t, Span> jobs;
  for (const RankTrace& rank : all) {
    const Span span = span_of(rank);
    Span& job = jobs.try_emplace(rank.job, span).first->second;
    job.begun = std::min(job.begun, span.begun);
    job.ended = std::max(job.ended, span.ended);
  }
  Span run =
      std::ranges::max_element(jobs, {}, [](const auto& job) { return job.second.ended; })->second;
  std::set<std::uint32_t> wanted;
  for (bool grows = true; grows;) {
    grows = false;
    for (const auto& [number, span] : jobs) {
      if (span.ended < run.begun || span.begun > run.ended || !wanted.insert(number).second)
        continue;
      run.begun = std::min(run.begun, span.begun);
      grows = true;
    }
  }
  std::erase_if(all, [&](const RankTrace& rank) { return !wanted.contains(rank.job); });
  return all;
}

std::vector<RankTrace> read_folder(const std::string& folder) {
  std::error_code error;
  std::vector<RankTrace> ranks;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".trace") ranks.push_back(read_rank(entry.path().string()));
  if (error) throw std::runtime_error(folder + " cannot be read: " + error.message());
  if (ranks.empty())
    throw std::runtime_error(folder + " has no traces; MACADAM_TRACE=" + folder +
                             " mpiexec ... writes some");
  ranks = newest_run(std::move(ranks));
  std::ranges::sort(ranks, {},
                    [](const RankTrace& rank) { return std::pair(rank.job, rank.rank); });
  return ranks;
}

// All times by the first rank's clock. Returns a line about each other clock.
std::string align(std::vector<RankTrace>& ranks, const std::vector<Message>& messages) {
  std::vector<std::string> clocks;
  std::vector<double> guesses;
  std::vector<std::size_t> clock_of;
  for (const RankTrace& rank : ranks) {
    const auto at = std::ranges::find(clocks, rank.clock);
    clock_of.push_back(static_cast<std::size_t>(at - clocks.begin()));
    if (at != clocks.end()) continue;
    clocks.push_back(rank.clock);
    guesses.push_back((rank.now - rank.wall) - (ranks[0].now - ranks[0].wall));
  }
  if (clocks.size() == 1) return {};
  std::vector<Crossing> crossings;
  for (const Message& message : messages) {
    const std::size_t from = clock_of[message.sender], to = clock_of[message.receiver];
    if (from == to) continue;
    crossings.push_back({from, to, ranks[message.sender].records[message.sent].at,
                         ranks[message.receiver].records[message.seen].at});
  }
  const std::vector<ClockLine> lines = align_clocks(crossings, guesses);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    set_clock(ranks[rank], lines[clock_of[rank]]);
  std::string text;
  for (std::size_t clock = 1; clock < clocks.size(); ++clock) {
    const ClockLine& line = lines[clock];
    text += line.within < 0
                ? fmt::format("The clock of {} is set by the time of day: no messages went both "
                              "ways.\n",
                              clocks[clock])
                : fmt::format("The clock of {} is {:.6f} s ahead of that of {}, by the messages "
                              "between them, give or take {:.1f} us.\n",
                              clocks[clock], line.ahead, clocks[0], line.within * 1e6);
  }
  return text;
}

} // namespace

std::string trace(const TraceQuestion& question) {
  std::vector<RankTrace> ranks = read_folder(question.folder);
  const std::vector<Message> messages = find_messages(ranks);
  const std::string clocks = align(ranks, messages);
  const std::string output = question.output.empty()
                                 ? (std::filesystem::path(question.folder) / "trace.json").string()
                                 : question.output;
  std::ofstream file(output);
  const TimelineSize size = write_timeline(file, ranks, messages);
  file.close();
  if (!file) throw std::runtime_error(output + " cannot be written: " + std::strerror(errno));

  std::set<std::string> hosts;
  std::uint64_t lost = 0;
  for (const RankTrace& rank : ranks) {
    hosts.insert(rank.host);
    lost += rank.lost;
  }
  std::string text = fmt::format(
      "{} rank{} on {} host{}, {:.3f} s: {} calls, {} steps of messages, {} messages from end to "
      "end.\n",
      ranks.size(), ranks.size() == 1 ? "" : "s", hosts.size(), hosts.size() == 1 ? "" : "s",
      size.seconds, size.calls, size.steps, messages.size());
  if (ranks[0].size > static_cast<int>(ranks.size()))
    text += fmt::format("Only {} of {} ranks have left a trace.\n", ranks.size(), ranks[0].size);
  if (size.pauses != 0)
    text += fmt::format("In {} pauses more happened than could be noted, {} short messages among "
                        "it; they are shown as such.\n",
                        size.pauses, size.in_pauses);
  if (lost != 0)
    text += fmt::format("{} older records are lost: each rank keeps the latest.\n", lost);
  return text + clocks + "The timeline is in " + output +
         "; open it in https://ui.perfetto.dev or chrome://tracing.\n";
}

} // namespace macadam::tools
