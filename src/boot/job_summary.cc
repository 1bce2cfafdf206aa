// SPDX-License-Identifier: BSD-3-Clause
#include "boot/job_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

namespace macadam::boot {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_functions = 6; // of those that took longest
constexpr double mentionable = 0.001;     // of the run time
constexpr std::size_t most_waits = 3;
constexpr int widest_matrix = 8; // ranks; beyond, the pairs that sent most
constexpr std::size_t most_pairs = 8;
constexpr std::size_t most_advice = 3;

constexpr int other_jobs = -1; // as a peer: all their ranks

struct Function {
  std::uint64_t calls = 0;
  double seconds = 0; // of all ranks
  double most = 0;    // of one rank: this one
  int most_rank = 0;
};

struct Wait {
  int rank = 0, peer = 0;
  std::string cause;
  std::uint64_t times = 0;
  double seconds = 0;
};

struct Sent {
  int rank = 0, peer = 0;
  std::uint64_t messages = 0, bytes = 0, successive = 0, successive_bytes = 0;
};

struct RankTime {
  int rank = 0;
  double run = 0, in_mpi = 0;
};

// What all ranks that kept the time said of it.
struct Facts {
  std::vector<RankTime> times;
  std::map<std::string, Function> functions;
  std::vector<Wait> waits;
  std::vector<Sent> sent;
  std::uint64_t sender_early = 0, long_messages = 0;

  void add(const Json& report);
  [[nodiscard]] double run() const { // of the rank that ran longest
    return std::ranges::max(times, {}, &RankTime::run).run;
  }
};

void Facts::add(const Json& report) {
  const auto time = report.find("time");
  if (time == report.end()) return;
  RankTime own{.rank = report.value("rank", 0), .run = time->value("run", 0.0)};
  for (const Json& row : member(*time, "functions")) {
    Function& function = functions[row.value("name", "?")];
    const double seconds = row.value("seconds", 0.0);
    own.in_mpi += seconds;
    function.calls += row.value("calls", std::uint64_t{0});
    function.seconds += seconds;
    if (seconds > function.most) {
      function.most = seconds;
      function.most_rank = own.rank;
    }
  }
  for (const Json& row : member(report, "waits"))
    waits.push_back({own.rank, row.value("peer", -1), row.value("cause", ""),
                     row.value("times", std::uint64_t{0}), row.value("seconds", 0.0)});
  for (const Json& row : member(report, "sent"))
    sent.push_back({own.rank, row.value("peer", -1), row.value("messages", std::uint64_t{0}),
                    row.value("bytes", std::uint64_t{0}), row.value("successive", std::uint64_t{0}),
                    row.value("successive_bytes", std::uint64_t{0})});
  for (const Json& row : member(report, "counters")) {
    const std::string name = row.value("name", "");
    const std::uint64_t value = row.value("value", std::uint64_t{0});
    if (name == "sender_early") sender_early += value;
    if (name == "sender_early" || name == "receiver_early" || name == "both")
      long_messages += value;
  }
  times.push_back(own);
}

std::string show_peer(int peer) {
  return peer == other_jobs ? "ranks of other jobs" : fmt::format("rank {}", peer);
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

double share(const RankTime& time) {
  return time.run > 0 ? time.in_mpi / time.run : 0;
}

std::string run_time(const Facts& facts) {
  const auto [least, most] = std::ranges::minmax(facts.times, {}, share);
  const double in_mpi =
      std::accumulate(facts.times.begin(), facts.times.end(), 0.0,
                      [](double sum, const RankTime& time) { return sum + time.in_mpi; });
  const double run =
      std::accumulate(facts.times.begin(), facts.times.end(), 0.0,
                      [](double sum, const RankTime& time) { return sum + time.run; });
  std::string line = fmt::format("\n  run time {}, of which {} in MPI", show_time(facts.run()),
                                 percent(in_mpi, run));
  if (facts.times.size() > 1)
    line += fmt::format(" (least: {} in rank {}, most: {} in rank {})",
                        percent(least.in_mpi, least.run), least.rank,
                        percent(most.in_mpi, most.run), most.rank);
  return line + "\n";
}

// The time that one rank spent in a function, by name.
std::string time_in_functions(const Facts& facts) {
  std::vector<std::pair<std::string, Function>> rows(facts.functions.begin(),
                                                     facts.functions.end());
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const auto& row) { return row.second.seconds; });
  if (rows.empty()) return {};
  const auto ranks = static_cast<double>(facts.times.size());
  double run = 0;
  for (const RankTime& time : facts.times)
    run += time.run / ranks;
  std::string text = fmt::format("\n  {:<26}{:>12}{:>12}{:>8}{:>12}\n", "time in MPI", "calls",
                                 "mean rank", "share", "most rank");
  std::size_t shown = 0;
  for (; shown < std::min(rows.size(), most_functions); ++shown) {
    const auto& [name, function] = rows[shown];
    if (shown != 0 && function.seconds < mentionable * run * ranks) break;
    const double mean = function.seconds / ranks;
    text += fmt::format("    {:<24}{:>12}{:>12}{:>8}{:>12}   rank {}\n", name, function.calls,
                        show_time(mean), percent(mean, run), show_time(function.most),
                        function.most_rank);
  }
  if (rows.size() == shown) return text;
  const std::size_t others = rows.size() - shown;
  double rest = 0;
  for (std::size_t i = shown; i < rows.size(); ++i)
    rest += rows[i].second.seconds / ranks;
  return text + fmt::format("    {:<36}{:>12}{:>8}\n",
                            fmt::format("{} other{}", others, others == 1 ? "" : "s"),
                            show_time(rest), percent(rest, run));
}

std::string explain(const Wait& wait) {
  if (wait.cause == "late sender") return "which sent late";
  if (wait.cause == "late receiver") return "which received late";
  return "which came late to a collective";
}

// The longest first.
std::vector<Wait> longest_waits(const Facts& facts) {
  std::vector<Wait> waits = facts.waits;
  std::ranges::stable_sort(waits, std::ranges::greater{}, &Wait::seconds);
  return waits;
}

std::string who_waited(const Facts& facts) {
  std::string text;
  const std::vector<Wait> waits = longest_waits(facts);
  for (std::size_t i = 0; i < std::min(waits.size(), most_waits); ++i) {
    const Wait& wait = waits[i];
    text +=
        fmt::format("    rank {} for {}, {}: {} in {} call{}\n", wait.rank, show_peer(wait.peer),
                    explain(wait), show_time(wait.seconds), wait.times, wait.times == 1 ? "" : "s");
  }
  return text.empty() ? text : "\n  waited longest\n" + text;
}

std::string show_traffic(const Sent& sent) {
  return fmt::format("{} / {}", sent.messages, show_bytes(sent.bytes));
}

std::string matrix(const Facts& facts, int ranks) {
  std::string text =
      "\n  messages / bytes sent, by the rank of the row to that of the column\n    " +
      std::string(6, ' ');
  std::vector<int> columns(static_cast<std::size_t>(ranks));
  std::iota(columns.begin(), columns.end(), 0);
  for (const int column : columns)
    text += fmt::format("{:>20}", column);
  if (std::ranges::find(facts.sent, other_jobs, &Sent::peer) != facts.sent.end()) {
    columns.push_back(other_jobs);
    text += fmt::format("{:>20}", "other jobs");
  }
  for (int row = 0; row < ranks; ++row) {
    std::string line = fmt::format("\n    {:>6}", row);
    for (const int column : columns) {
      const auto found = std::ranges::find_if(
          facts.sent, [&](const Sent& sent) { return sent.rank == row && sent.peer == column; });
      line += fmt::format("{:>20}", found == facts.sent.end() ? "-" : show_traffic(*found));
    }
    text += line;
  }
  return text + "\n";
}

std::string who_sent(const Facts& facts) {
  if (facts.sent.empty()) return {};
  int last = 0;
  for (const Sent& sent : facts.sent)
    last = std::max({last, sent.rank, sent.peer});
  const int ranks = last + 1;
  if (ranks <= widest_matrix) return matrix(facts, ranks);
  std::vector<Sent> pairs = facts.sent;
  std::ranges::stable_sort(pairs, std::ranges::greater{}, &Sent::bytes);
  std::string text = fmt::format("\n  messages / bytes sent: the busiest of {} pairs of ranks\n",
                                 facts.sent.size());
  for (std::size_t i = 0; i < std::min(pairs.size(), most_pairs); ++i)
    text += fmt::format("    rank {} to {}: {}\n", pairs[i].rank, show_peer(pairs[i].peer),
                        show_traffic(pairs[i]));
  return text;
}

// Advice, and how much of the run time may be won by it at most.
struct Advice {
  double seconds;
  std::string text;
};

// What is below this part of the run time is not worth a change.
constexpr double worthwhile = 0.05;

void advise_balance(const Facts& facts, std::vector<Advice>& advice) {
  double mean = 0;
  for (const RankTime& time : facts.times)
    mean += (time.run - time.in_mpi) / static_cast<double>(facts.times.size());
  const RankTime& most = std::ranges::max(
      facts.times, {}, [](const RankTime& time) { return time.run - time.in_mpi; });
  const double longest = most.run - most.in_mpi;
  // Where half of the ranks compute about as long, it is not one that the others wait for: a rank
  // may serve the others.
  std::vector<double> computes;
  for (const RankTime& time : facts.times)
    computes.push_back(time.run - time.in_mpi);
  const auto middle = computes.begin() + static_cast<long>((computes.size() - 1) / 2);
  std::ranges::nth_element(computes, middle);
  if (*middle > 0.9 * longest) return;
  advice.push_back(
      {longest - mean,
       fmt::format("Rank {} computes for {}, all ranks {} on average: the others wait for it. A "
                   "more even share of the work would help most.",
                   most.rank, show_time(longest), show_time(mean))});
}

// A wait of less is for the message itself: seconds.
constexpr double as_a_message_takes = 10e-6;

void advise_waits(const Facts& facts, std::vector<Advice>& advice) {
  std::map<std::string, bool> told;
  for (const Wait& wait : longest_waits(facts)) {
    if (wait.cause == "collective" || std::exchange(told[wait.cause], true)) continue;
    const std::string time = show_time(wait.seconds);
    const double each = wait.seconds / static_cast<double>(std::max<std::uint64_t>(wait.times, 1));
    if (wait.cause == "late sender" && each < as_a_message_takes)
      advice.push_back(
          {wait.seconds,
           fmt::format("Rank {} waited {} times for messages of {}, {} each, which is about "
                       "as long as a message takes: fewer, longer ones or several at a time cost "
                       "less.",
                       wait.rank, wait.times, show_peer(wait.peer), show_time(each))});
    else if (wait.cause == "late sender")
      advice.push_back(
          {wait.seconds,
           fmt::format("Rank {} waited {} for messages of {} that were not sent "
                       "yet: send them earlier, or compute before you wait (MPI_Irecv, "
                       "work, MPI_Wait).",
                       wait.rank, time, show_peer(wait.peer))});
    else
      advice.push_back(
          {wait.seconds, fmt::format("Rank {} waited {} until {} received what it had sent: "
                                     "post those receives earlier (MPI_Irecv), or do not wait at "
                                     "once (MPI_Isend).",
                                     wait.rank, time, show_peer(wait.peer))});
  }
}

// A cautious guess: what a message costs depends on the network.
constexpr double cost_of_short_message = 0.5e-6; // seconds
constexpr std::uint64_t many_messages = 100;

void advise_messages(const Facts& facts, std::vector<Advice>& advice) {
  const auto most = std::ranges::max_element(facts.sent, {}, &Sent::successive);
  if (most != facts.sent.end() && most->successive >= many_messages)
    advice.push_back(
        {static_cast<double>(most->successive) * cost_of_short_message,
         fmt::format("Rank {} sent {} messages to {}, of {} on average, each right after "
                     "another: one longer message in their place costs less.",
                     most->rank, most->successive, show_peer(most->peer),
                     show_bytes(most->successive_bytes / most->successive))});
  double waited = 0;
  for (const Wait& wait : facts.waits)
    if (wait.cause == "late receiver") waited += wait.seconds;
  if (facts.long_messages != 0 && 2 * facts.sender_early > facts.long_messages)
    advice.push_back({waited, fmt::format("{} of {} long messages were sent before their receive "
                                          "was posted: receives that are there first are written "
                                          "to directly (RECV_RNDV).",
                                          facts.sender_early, facts.long_messages)});
}

std::vector<std::string> advise(const Facts& facts) {
  std::vector<Advice> all;
  if (facts.times.empty()) return {};
  if (facts.times.size() > 1) advise_balance(facts, all);
  advise_waits(facts, all);
  advise_messages(facts, all);
  std::ranges::stable_sort(all, std::ranges::greater{}, &Advice::seconds);
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < std::min(all.size(), most_advice); ++i) {
    if (all[i].seconds > worthwhile * facts.run()) sentences.push_back(std::move(all[i].text));
  }
  return sentences;
}

Facts facts_of(const std::vector<Json>& ranks) {
  Facts facts;
  for (const Json& report : ranks)
    facts.add(report);
  return facts;
}

} // namespace

const Json& member(const Json& object, const char* name) {
  static const Json nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string show_time(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string show_bytes(std::uint64_t value) {
  const auto bytes = static_cast<double>(value);
  if (value >= 10ULL << 30) return fmt::format("{:.4g} GiB", bytes / (1 << 30));
  if (value >= 1ULL << 20) return fmt::format("{:.4g} MiB", bytes / (1 << 20));
  if (value >= 1ULL << 10) return fmt::format("{:.4g} KiB", bytes / (1 << 10));
  return fmt::format("{} B", value);
}

std::string job_summary(const std::vector<Json>& ranks) {
  const Facts facts = facts_of(ranks);
  if (facts.times.empty()) return {};
  std::string page =
      run_time(facts) + time_in_functions(facts) + who_waited(facts) + who_sent(facts);
  const std::vector<std::string> advice = advise(facts);
  if (!advice.empty()) page += "\n  advice\n";
  for (const std::string& sentence : advice)
    page += fmt::format("    {}\n", sentence);
  return page;
}

std::vector<std::string> job_advice(const std::vector<Json>& ranks) {
  return advise(facts_of(ranks));
}

} // namespace macadam::boot
