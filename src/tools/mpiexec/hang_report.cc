// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/hang_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace macadam::tools {
namespace {

using Json = nlohmann::json;
using Kind = RankStatus::Kind;

constexpr int any = -1;
constexpr std::size_t most_lines = 16; // of one kind and rank; the rest is counted

// A message or a receive as both sides name it.
struct Envelope {
  std::string comm;
  int peer = any;
  int tag = any;
  std::uint64_t bytes = 0;

  [[nodiscard]] std::string show_comm() const { return comm.empty() ? "" : " in " + comm; }
  [[nodiscard]] std::string show_tag() const {
    return tag == any ? "any tag" : fmt::format("tag {}", tag);
  }
  [[nodiscard]] std::string show() const {
    const std::string from = peer == any ? "any rank" : fmt::format("rank {}", peer);
    return fmt::format("{}, {}{}, {} bytes", from, show_tag(), show_comm(), bytes);
  }
};

struct Rendezvous {
  Envelope envelope;
  std::string protocol, stage;
  bool sending = false;
  bool tagged = false; // the envelope's tag is known
};

struct Receive {
  Envelope envelope;
  bool announced = false;
};

// One rank's text, read.
struct Waiting {
  std::string in, what;
  std::uint64_t moves = 0;
  std::vector<Receive> posted;
  std::vector<Envelope> unexpected;
  std::vector<Rendezvous> rendezvous;
  std::map<std::string, std::vector<int>> connections; // by state
  std::string damage;                                  // why the text could not be read
};

const Json& member(const Json& object, const char* name) {
  static const Json nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

Envelope read_envelope(const Json& json, const char* peer) {
  const Json& comm = member(json, "comm");
  return {comm.is_string() ? comm.get<std::string>()
          : comm.is_null() ? ""
                           : "communicator " + comm.dump(),
          json.value(peer, any), json.value("tag", any), json.value("bytes", std::uint64_t{0})};
}

Waiting read_waiting(const std::string& text) {
  Waiting result;
  try {
    const Json json = Json::parse(text);
    result.in = json.value("waiting_in", "");
    result.what = json.value("waiting_for", "");
    result.moves = json.value("moves", std::uint64_t{0});
    result.damage = json.value("error", "");
    for (const Json& row : member(json, "posted"))
      result.posted.push_back({read_envelope(row, "source"), row.value("announced", false)});
    for (const Json& row : member(json, "unexpected"))
      result.unexpected.push_back(read_envelope(row, "source"));
    for (const Json& row : member(json, "rendezvous"))
      result.rendezvous.push_back({read_envelope(row, "peer"), row.value("protocol", ""),
                                   row.value("stage", ""), row.value("sending", false),
                                   row.contains("tag")});
    for (const Json& row : member(json, "connections"))
      result.connections[row.value("state", "unknown")].push_back(row.value("peer", any));
  } catch (const Json::exception& error) {
    result.damage = error.what();
  }
  return result;
}

// Lines of one kind: equal ones once with their number, and no more than most_lines of them.
void print_lines(std::string& page, const char* heading, const std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, int>> counted;
  for (const std::string& line : lines) {
    const auto same = std::find_if(counted.begin(), counted.end(),
                                   [&](const auto& entry) { return entry.first == line; });
    if (same == counted.end())
      counted.emplace_back(line, 1);
    else
      ++same->second;
  }
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (i == most_lines) {
      page += fmt::format("      {:<14}and {} more\n", "", counted.size() - i);
      break;
    }
    const auto& [line, count] = counted[i];
    page += fmt::format("      {:<14}{}{}\n", heading, line,
                        count > 1 ? fmt::format("   ({} times)", count) : "");
  }
}

void print_waiting(std::string& page, const Waiting& waiting) {
  std::vector<std::string> lines;
  for (const Receive& receive : waiting.posted)
    lines.push_back("from " + receive.envelope.show() + (receive.announced ? ", announced" : ""));
  print_lines(page, "receive", lines);

  lines.clear();
  for (const Envelope& message : waiting.unexpected)
    lines.push_back("from " + message.show());
  print_lines(page, "unexpected", lines);

  lines.clear();
  for (const Rendezvous& row : waiting.rendezvous)
    lines.push_back(fmt::format("{} rank {}{}{}, {} bytes: {}, {}", row.sending ? "to" : "with",
                                row.envelope.peer, row.tagged ? ", " + row.envelope.show_tag() : "",
                                row.envelope.show_comm(), row.envelope.bytes, row.protocol,
                                row.stage));
  print_lines(page, "rendezvous", lines);

  lines.clear();
  for (const auto& [state, peers] : waiting.connections)
    lines.push_back(fmt::format(
        "{} {} ({} {})", peers.size(), state, peers.size() == 1 ? "rank" : "ranks",
        fmt::join(peers.begin(),
                  peers.begin() + static_cast<long>(std::min(peers.size(), most_lines)), ", ")));
  print_lines(page, "connections", lines);
  if (!waiting.damage.empty())
    page += fmt::format("      its report could not be read: {}\n", waiting.damage);
}

std::string show_state(const RankStatus& rank, const Waiting& waiting) {
  switch (rank.kind) {
  case Kind::answered:
    return "waits in " + (waiting.in.empty() ? "MPI" : waiting.in) +
           (waiting.what.empty() ? "" : " for " + waiting.what);
  case Kind::silent:
    return "computes outside MPI (no answer within 1 s)";
  case Kind::not_in_mpi:
    return "has not called MPI_Init";
  case Kind::finalized:
    return "has called MPI_Finalize";
  case Kind::aborted:
    return "has called MPI_Abort";
  case Kind::ended:
    return "has ended";
  case Kind::elsewhere:
    return "is on host " + rank.json + ", where mpiexec tells what it waits for";
  }
  return {};
}

// Why one rank cannot go on before another one acts.
struct Edge {
  int to;
  std::string reason;
};

std::vector<Edge> edges_of(const Waiting& waiting) {
  std::vector<Edge> edges;
  std::set<int> seen;
  for (const Receive& receive : waiting.posted)
    if (receive.envelope.peer != any && seen.insert(receive.envelope.peer).second)
      edges.push_back({receive.envelope.peer, "a message with " + receive.envelope.show_tag()});
  for (const Rendezvous& row : waiting.rendezvous)
    if (row.envelope.peer != any && seen.insert(row.envelope.peer).second)
      edges.push_back({row.envelope.peer, row.protocol + ": " + row.stage});
  for (const auto& [state, peers] : waiting.connections)
    for (int peer : peers)
      if (state == "connecting" && seen.insert(peer).second)
        edges.push_back({peer, "its answer to a connection request"});
  return edges;
}

// A circle of ranks each of which waits for one rank only; nobody in it can ever go on.
std::optional<std::vector<int>> find_circle(const std::vector<std::vector<Edge>>& edges) {
  std::vector<std::size_t> visited(edges.size(), 0); // by which walk, from 1
  for (std::size_t start = 0; start < edges.size(); ++start) {
    std::vector<int> walk;
    std::size_t at = start;
    while (at < edges.size() && edges[at].size() == 1 && visited[at] == 0) {
      visited[at] = start + 1;
      walk.push_back(static_cast<int>(at));
      at = static_cast<std::size_t>(edges[at].front().to);
    }
    if (at >= edges.size() || edges[at].size() != 1 || visited[at] != start + 1) continue;
    walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), static_cast<int>(at)));
    return walk;
  }
  return std::nullopt;
}

std::vector<Waiting> read_all(const std::vector<RankStatus>& ranks) {
  std::vector<Waiting> waiting;
  for (const RankStatus& rank : ranks)
    waiting.push_back(rank.kind == Kind::answered ? read_waiting(rank.json) : Waiting{});
  return waiting;
}

std::vector<std::vector<Edge>> all_edges(const std::vector<Waiting>& waiting) {
  std::vector<std::vector<Edge>> edges;
  for (const Waiting& rank : waiting)
    edges.push_back(edges_of(rank));
  return edges;
}

// A circle of ranks that stand where they stood in an earlier look.
std::optional<std::vector<int>> find_standing_circle(const std::vector<Waiting>& now,
                                                     const std::vector<Waiting>& earlier) {
  std::vector<std::vector<Edge>> edges = all_edges(now);
  for (std::size_t rank = 0; rank < edges.size(); ++rank) {
    const bool stands = rank < earlier.size() && !edges_of(earlier[rank]).empty() &&
                        earlier[rank].moves == now[rank].moves;
    if (!stands) edges[rank].clear();
  }
  return find_circle(edges);
}

void print_edges(std::string& page, const std::vector<Waiting>& now,
                 const std::vector<Waiting>& earlier) {
  const std::vector<std::vector<Edge>> edges = all_edges(now);
  std::string lines;
  for (std::size_t rank = 0; rank < edges.size(); ++rank)
    for (const Edge& edge : edges[rank])
      lines += fmt::format("    rank {} waits for rank {}: {}\n", rank, edge.to, edge.reason);
  if (!lines.empty()) page += "\n  who waits for whom\n" + lines;
  if (const auto circle = find_standing_circle(now, earlier))
    page += fmt::format("    rank {} -> rank {}: a circle, none of these can go on by itself\n",
                        fmt::join(*circle, " -> rank "), circle->front());
}

// In words how a message misses a receive by one thing only; empty if by none or by more.
std::string near_miss(int rank, const Envelope& receive, const Envelope& message,
                      const std::string& where) {
  const bool same_comm = receive.comm == message.comm;
  const bool same_tag = receive.tag == any || receive.tag == message.tag;
  const bool same_peer = receive.peer == any || receive.peer == message.peer;
  if (!same_peer || same_comm == same_tag) return {};
  const std::string waits = fmt::format("rank {} waits for a message from rank {} with {}{}", rank,
                                        message.peer, receive.show_tag(), receive.show_comm());
  if (same_comm)
    return fmt::format("{}; one with {} {}: is a tag wrong?", waits, message.show_tag(), where);
  return fmt::format("{}; one with {}{} {}: is a communicator wrong?", waits, message.show_tag(),
                     message.show_comm(), where);
}

void print_near_misses(std::string& page, const std::vector<Waiting>& ranks) {
  std::vector<std::string> lines;
  const auto compare = [&](std::size_t rank, const Envelope& message, const std::string& where) {
    for (const Receive& receive : ranks[rank].posted)
      if (std::string line = near_miss(static_cast<int>(rank), receive.envelope, message, where);
          !line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Envelope& message : ranks[rank].unexpected)
      compare(rank, message, "has arrived and nobody receives it");
    for (const Rendezvous& row : ranks[rank].rendezvous) {
      const auto receiver = static_cast<std::size_t>(row.envelope.peer);
      if (!row.sending || !row.tagged || receiver >= ranks.size()) continue;
      Envelope message = row.envelope;
      message.peer = static_cast<int>(rank);
      compare(receiver, message, "is waiting to be sent");
    }
  }
  if (lines.empty()) return;
  page += "\n  near misses\n";
  for (std::size_t i = 0; i < lines.size() && i < most_lines; ++i)
    page += "    " + lines[i] + "\n";
  if (lines.size() > most_lines)
    page += fmt::format("    and {} more\n", lines.size() - most_lines);
}

} // namespace

std::string hang_report(const std::string& host, const std::vector<RankStatus>& ranks,
                        const std::vector<RankStatus>& earlier, const std::string& job) {
  const std::vector<Waiting> waiting = read_all(ranks);
  const auto here = std::ranges::count_if(
      ranks, [](const RankStatus& rank) { return rank.kind != Kind::elsewhere; });
  std::string page = fmt::format("mpiexec: what {} rank{}{} on host {} {} waiting for\n", here,
                                 here == 1 ? "" : "s", job, host, here == 1 ? "is" : "are");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    page += fmt::format("\n  rank {} {}\n", rank, show_state(ranks[rank], waiting[rank]));
    print_waiting(page, waiting[rank]);
  }
  print_edges(page, waiting, read_all(earlier));
  print_near_misses(page, waiting);
  return page;
}

bool shows_circle(const std::vector<RankStatus>& ranks) {
  return find_circle(all_edges(read_all(ranks))).has_value();
}

std::vector<RankStatus> look_at(const boot::JobMemory& memory) {
  using boot::RankState;
  const boot::JobHeader& header = memory.header();
  const std::uint32_t wanted = header.reports_wanted.load();
  std::vector<RankStatus> ranks;
  for (int rank = 0; rank < memory.size(); ++rank) {
    RankStatus& status = ranks.emplace_back();
    if (!memory.is_local(rank)) {
      status = {RankStatus::Kind::elsewhere, memory.host_of(rank)};
      continue;
    }
    const boot::RankRow& row = memory.row(rank);
    const boot::ReportArea& area = memory.report(rank);
    switch (row.state.load(std::memory_order_acquire)) {
    case RankState::starting:
      status.kind = Kind::not_in_mpi;
      break;
    case RankState::running:
      status.kind = Kind::silent;
      if (row.report_answered.load(std::memory_order_acquire) != wanted) break;
      status.kind = Kind::answered;
      status.json.assign(area.text.data(), std::min<std::size_t>(area.bytes, area.text.size()));
      break;
    case RankState::finalized:
    case RankState::gone:
      status.kind = Kind::finalized;
      break;
    case RankState::aborted:
      status.kind = Kind::aborted;
      break;
    case RankState::dead:
      status.kind = Kind::ended;
      break;
    }
  }
  return ranks;
}

} // namespace macadam::tools
