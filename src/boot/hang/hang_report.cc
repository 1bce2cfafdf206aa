// SPDX-License-Identifier: BSD-3-Clause
#include "boot/hang/hang_report.h"
#include "boot/hang/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace macadam::boot {
namespace {

using Kind = RankStatus::Kind;

constexpr std::size_t most_lines = 16; // of one kind and rank; the rest is counted
constexpr std::size_t most_causes = 8; // of why the job does not go on, of each kind
constexpr std::size_t most_parts = 8;  // ranks that are not alike, with all that they wait for,
constexpr std::size_t most_named = 16; // ... and with what they are in alone

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

// For a rank in a collective, whose messages say less than which rank is missing.
bool is_of_collective(const Waiting& waiting, const Envelope& envelope) {
  return !waiting.collectives.empty() && envelope.is_of_collective();
}

void print_waiting(std::string& page, const Waiting& waiting) {
  std::vector<std::string> lines;
  for (const Receive& receive : waiting.posted)
    if (receive.probe) lines.push_back("for " + receive.envelope.show_without_bytes());
  print_lines(page, "probe", lines);

  lines.clear();
  for (const Receive& receive : waiting.posted)
    if (!receive.probe && !is_of_collective(waiting, receive.envelope) &&
        !receive.envelope.is_internal())
      lines.push_back("from " + receive.envelope.show() + (receive.announced ? ", announced" : ""));
  print_lines(page, "receive", lines);

  // Those of collectives that this rank has not entered say which, and no more.
  lines.clear();
  std::map<std::string, std::size_t> of_collectives;
  for (const Envelope& message : waiting.unexpected) {
    if (message.is_of_collective())
      ++of_collectives[message.comm];
    else
      lines.push_back("from " + message.show());
  }
  for (const auto& [comm, count] : of_collectives)
    lines.push_back(fmt::format(
        "{} in {}", count == 1 ? "one message" : fmt::format("{} messages", count), comm));
  print_lines(page, "unexpected", lines);

  lines.clear();
  for (const Rendezvous& row : waiting.rendezvous)
    lines.push_back(
        fmt::format("{} rank {}{}{}, {} bytes: {}, {}", row.sending ? "to" : "with",
                    show_rank(row.envelope.peer), row.tagged ? ", " + row.envelope.show_tag() : "",
                    row.envelope.show_comm(), row.envelope.bytes, row.protocol, row.stage));
  print_lines(page, "rendezvous", lines);

  lines.clear();
  for (const auto& [state, peers] : waiting.connections)
    if (waiting.collectives.empty() || state != "connected") {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < std::min(peers.size(), most_lines); ++i)
        names.push_back(show_rank(peers[i]));
      lines.push_back(fmt::format("{} {} ({} {})", peers.size(), state,
                                  peers.size() == 1 ? "rank" : "ranks", fmt::join(names, ", ")));
    }
  print_lines(page, "connections", lines);
  if (!waiting.damage.empty())
    page += fmt::format("      its report could not be read: {}\n", waiting.damage);
}

// "rank 3", "ranks 0, 2 to 9", "ranks 1, 3, ... 31", of long lists the beginning.
std::string show_ranks(const std::vector<int>& ranks) {
  constexpr int most_groups = 12;
  std::string text;
  int groups = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (groups++ == most_groups) {
      text += fmt::format(" and {} more", ranks.size() - i);
      break;
    }
    // As many as follow each other at one distance: those next to each other from three on, others
    // from four.
    std::size_t last = i;
    const int distance = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 0;
    while (last + 1 < ranks.size() && ranks[last + 1] - ranks[last] == distance)
      ++last;
    if (last - i < (distance == 1 ? 2 : 3)) last = i; // "0, 1"
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (last > i && distance == 1) text += fmt::format(" to {}", ranks[last]);
    if (last > i && distance > 1) text += fmt::format(", {}, ... {}", ranks[i + 1], ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

// "42", "42 on host b".
std::string show_process(const RankStatus& rank) {
  return fmt::format("{}{}{}", rank.process, rank.host.empty() ? "" : " on host ", rank.host);
}

// What a rank does, or several (`many`) do.
std::string show_state(const RankStatus& rank, const Waiting& waiting, bool many) {
  const char* const has = many ? "have" : "has";
  switch (rank.kind) {
  case Kind::answered:
    return fmt::format("{} in {}{}", many ? "wait" : "waits",
                       waiting.in.empty() ? "MPI" : waiting.in,
                       waiting.what.empty() ? "" : " for " + waiting.what);
  case Kind::silent:
    return fmt::format("{} outside MPI (no answer within 1 s)", many ? "compute" : "computes");
  case Kind::stopped:
    return fmt::format("{} stopped, by SIGSTOP or a debugger{}", many ? "are" : "is",
                       many ? ""
                            : fmt::format(" (kill -CONT {} lets it go on)", show_process(rank)));
  case Kind::not_in_mpi:
    return fmt::format("{} not called MPI_Init", has);
  case Kind::finalized:
    return fmt::format("{} called MPI_Finalize", has);
  case Kind::aborted:
    return fmt::format("{} called MPI_Abort", has);
  case Kind::ended:
    return fmt::format("{} ended", has);
  case Kind::elsewhere:
    return fmt::format("{} on host {}, whose own page tells what {} for", many ? "are" : "is",
                       rank.json, many ? "they wait" : "it waits");
  case Kind::unheard:
    return fmt::format("{} on host {}, which has not answered", many ? "are" : "is", rank.json);
  }
  return {};
}

// --- Collectives.

// Ranks in one collective, by the function that each is in, and those that are not in it.
struct Meeting {
  const InCollective* first = nullptr;
  std::map<std::string, std::vector<int>> present;
  std::vector<int> missing;
  std::vector<int> left;
  std::map<std::string, std::vector<int>> others; // that have left another call in its place
};

// The collectives that ranks are in. Blocking and nonblocking ones of a communicator are not told
// apart: they have one order.
std::vector<Meeting> meetings_of(const std::vector<Waiting>& ranks) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, Meeting> meetings;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const InCollective& row : ranks[rank].collectives) {
      Meeting& meeting = meetings[{row.id, row.number}];
      if (meeting.first == nullptr || meeting.first->members.empty()) meeting.first = &row;
      meeting.present[row.function].push_back(static_cast<int>(rank));
    }
  std::vector<Meeting> result;
  for (auto& [key, meeting] : meetings) {
    for (const int member : meeting.first->members) {
      const auto rank = static_cast<std::size_t>(member);
      const bool present = std::ranges::any_of(meeting.present, [&](const auto& entry) {
        return std::ranges::find(entry.second, member) != entry.second.end();
      });
      if (present || rank >= ranks.size()) continue;
      const auto found = ranks[rank].called.find(key.first);
      const Waiting::Called called =
          found == ranks[rank].called.end() ? Waiting::Called{} : found->second;
      if (key.second == 0 || meeting.first->persistent || called.count < key.second)
        meeting.missing.push_back(member);
      else if (called.count == key.second && !called.last.empty() &&
               !meeting.present.contains(called.last))
        meeting.others[called.last].push_back(member);
      else
        meeting.left.push_back(member);
    }
    result.push_back(std::move(meeting));
  }
  return result;
}

// What a rank that is not in a collective does instead; `many` do.
std::string show_elsewhere(const Meeting& meeting, const RankStatus& rank, const Waiting& waiting,
                           bool many) {
  // One that does not answer, or has started a persistent one before, may have entered it.
  const bool answers = rank.kind != Kind::silent && rank.kind != Kind::stopped &&
                       rank.kind != Kind::elsewhere && !meeting.first->persistent;
  const std::vector<InCollective>& in = waiting.collectives;
  const std::string state =
      show_state(rank, waiting, many) +
      (in.empty() || in.front().function != waiting.in ? "" : " on " + in.front().comm);
  // As the root that waits for another job.
  if (answers && in.empty() && waiting.in == meeting.first->function) return state;
  return fmt::format("{} {}: {} {}", many ? "have" : "has",
                     answers ? "not entered it" : "not been seen in it", many ? "they" : "it",
                     state);
}

// Those that do the same, together.
std::string show_missing(const Meeting& meeting, const std::vector<RankStatus>& ranks,
                         const std::vector<Waiting>& waiting) {
  const auto show = [&](int rank, bool many) {
    const auto at = static_cast<std::size_t>(rank);
    return show_elsewhere(meeting, ranks[at], waiting[at], many);
  };
  std::map<std::string, std::vector<int>> by_state;
  for (const int rank : meeting.missing)
    by_state[show(rank, false)].push_back(rank);
  std::string text;
  for (const auto& [alone, those] : by_state)
    text += fmt::format("; {} {}", show_ranks(those), show(those.front(), those.size() > 1));
  return text;
}

// Of a collective that all have entered.
std::string show_left(const std::vector<int>& left) {
  if (left.empty()) return {};
  return fmt::format("; all have entered it and {} {} left it: if the others stay, root, counts or "
                     "types differ (MACADAM_CHECK=1 names them)",
                     show_ranks(left), left.size() == 1 ? "has" : "have");
}

void print_meetings(std::string& page, const std::vector<Meeting>& meetings,
                    const std::vector<RankStatus>& ranks, const std::vector<Waiting>& waiting) {
  std::string lines;
  for (const Meeting& meeting : meetings) {
    if (&meeting == &meetings.front() + most_causes) {
      lines += fmt::format("    and {} more\n", meetings.size() - most_causes);
      break;
    }
    std::string present;
    const InCollective& row = *meeting.first;
    for (const auto& [function, those] : meeting.present)
      present += fmt::format("{}{} {} in {}{}", present.empty() ? "" : ", ", show_ranks(those),
                             those.size() == 1 ? "is" : "are", function,
                             row.persistent ? " (started)" : "");
    const std::string number =
        row.number == 0 ? ""
                        : fmt::format(", number {} of its {}", row.number,
                                      row.function == "MPI_Win_fence" ? "fences" : "collectives");
    std::string others;
    for (const auto& [function, those] : meeting.others)
      others += fmt::format("; {} called {} as that one", show_ranks(those), function);
    const bool differ = meeting.present.size() > 1 || !others.empty();
    lines += fmt::format("    {} on {}{}{}{}{}{}\n", present, row.comm, number, others,
                         differ ? ": different calls" : "", show_missing(meeting, ranks, waiting),
                         differ || !meeting.missing.empty() ? "" : show_left(meeting.left));
  }
  if (!lines.empty()) page += "\n  collectives\n" + lines;
}

// --- Locks of windows.

// Who has the lock of `locked` in a window. Nobody knows but the holder, which may not answer.
std::string show_holders(const InWindow& wanted, const std::vector<RankStatus>& ranks,
                         const std::vector<Waiting>& waiting) {
  if (wanted.waits_for < any) return "who has it is not known here"; // several jobs have that rank
  std::vector<int> alone, shared, silent;
  for (std::size_t rank = 0; rank < waiting.size(); ++rank) {
    const bool member = std::ranges::find(wanted.members, rank) != wanted.members.end();
    const Kind kind = ranks[rank].kind;
    if (member && (kind == Kind::silent || kind == Kind::stopped || kind == Kind::elsewhere ||
                   kind == Kind::unheard))
      silent.push_back(static_cast<int>(rank));
    for (const InWindow& window : waiting[rank].windows) {
      const auto lock = window.holds.find(wanted.waits_for);
      if (window.id == wanted.id && lock != window.holds.end())
        (lock->second ? alone : shared).push_back(static_cast<int>(rank));
    }
  }
  const auto show = [&](const std::vector<int>& those, const char* how) {
    const bool many = those.size() > 1;
    const auto first = static_cast<std::size_t>(those.front());
    return fmt::format("{} {} it{} and {}", show_ranks(those), many ? "hold" : "holds", how,
                       show_state(ranks[first], waiting[first], many));
  };
  if (!alone.empty()) return show(alone, " exclusively");
  if (!shared.empty()) return show(shared, ", shared,");
  const bool all_known =
      std::ranges::all_of(wanted.members, [](int member) { return member > any; });
  if (!all_known) return "none of the ranks of this job holds it, perhaps one of another job";
  if (silent.empty()) return "none of the ranks holds it: it waits for its turn";
  return fmt::format("none of those that answer holds it, perhaps {}", show_ranks(silent));
}

void print_locks(std::string& page, const std::vector<RankStatus>& ranks,
                 const std::vector<Waiting>& waiting) {
  // Those that wait for the same, together.
  std::map<std::pair<std::uint64_t, int>, std::pair<const InWindow*, std::vector<int>>> waits;
  for (std::size_t rank = 0; rank < waiting.size(); ++rank)
    for (const InWindow& window : waiting[rank].windows) {
      if (window.waits_for == any) continue;
      auto& wait = waits[{window.id, window.waits_for}];
      wait.first = &window;
      wait.second.push_back(static_cast<int>(rank));
    }
  if (!waits.empty()) page += "\n  locks of windows\n";
  for (const auto& [key, wait] : waits)
    page +=
        fmt::format("    {} {} for the lock of rank {} on {}; {}\n", show_ranks(wait.second),
                    wait.second.size() == 1 ? "waits" : "wait", show_rank(wait.first->waits_for),
                    wait.first->name, show_holders(*wait.first, ranks, waiting));
}

// --- Who waits for whom.

// Why one rank cannot go on before another one acts, of another job maybe.
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
    if (row.envelope.peer != any && !row.unmarked && seen.insert(row.envelope.peer).second)
      edges.push_back({row.envelope.peer, row.protocol + ": " + row.stage});
  for (const InWindow& window : waiting.windows) {
    if (window.post_of != any && seen.insert(window.post_of).second)
      edges.push_back({window.post_of, "its MPI_Win_post on " + window.name});
    for (const int origin : window.complete_of)
      if (seen.insert(origin).second)
        edges.push_back({origin, "its MPI_Win_complete on " + window.name});
  }
  for (const auto& [state, peers] : waiting.connections)
    for (int peer : peers)
      if (state == "connecting" && seen.insert(peer).second)
        edges.push_back({peer, "its answer to a connection request"});
  return edges;
}

// Whether it may go on by somebody that no edge names: who sends what it receives from any source,
// has a lock that it waits for, or acts outside of its job.
bool has_other_ways(const Waiting& waiting) {
  return !waiting.what.empty() || std::ranges::any_of(waiting.posted, [](const Receive& each) {
    return each.envelope.peer == any;
  }) || std::ranges::any_of(waiting.windows, [](const InWindow& each) {
    return each.waits_for != any;
  });
}

// A circle of ranks each of which waits for one rank only; nobody in it can ever go on, but those
// that may do more than wait.
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

// The edges of ranks that nobody else can let go on.
std::vector<std::vector<Edge>> binding_edges(const std::vector<Waiting>& waiting) {
  std::vector<std::vector<Edge>> edges = all_edges(waiting);
  for (std::size_t rank = 0; rank < edges.size(); ++rank)
    if (has_other_ways(waiting[rank])) edges[rank].clear();
  return edges;
}

// A circle of ranks that stand where they stood in an earlier look.
std::optional<std::vector<int>> find_standing_circle(const std::vector<Waiting>& now,
                                                     const std::vector<Waiting>& earlier) {
  std::vector<std::vector<Edge>> edges = binding_edges(now);
  for (std::size_t rank = 0; rank < edges.size(); ++rank) {
    const bool stands = rank < earlier.size() && !edges_of(earlier[rank]).empty() &&
                        earlier[rank].moves == now[rank].moves;
    if (!stands) edges[rank].clear();
  }
  return find_circle(edges);
}

// "rank 0 -> rank 1 -> rank 0". Of a long one its beginning and its end.
std::string show_circle(const std::vector<int>& circle) {
  const auto head = circle.begin() + static_cast<long>(std::min(circle.size(), most_parts));
  return fmt::format("rank {} -> {}rank {}", fmt::join(circle.begin(), head, " -> rank "),
                     head == circle.end() ? ""
                                          : fmt::format("... ({} more) -> ", circle.end() - head),
                     circle.front());
}

// Those that may do more than wait are named.
std::string show_way_out(const std::vector<int>& circle, const std::vector<Waiting>& now) {
  std::vector<int> free;
  std::ranges::copy_if(circle, std::back_inserter(free),
                       [&](int rank) { return now[static_cast<std::size_t>(rank)].may_do_more; });
  if (free.empty()) return "none of these can go on by itself";
  std::ranges::sort(free);
  return fmt::format("unless {} {} something else first", show_ranks(free),
                     free.size() == 1 ? "does" : "do");
}

void print_edges(std::string& page, const std::vector<Waiting>& now,
                 const std::vector<Waiting>& earlier, const std::vector<Meeting>& meetings) {
  // If a collective lacks a rank, all others wait for that one, whatever the algorithm
  // says.
  std::set<int> explained;
  for (const Meeting& meeting : meetings)
    for (const auto& [function, those] : meeting.present)
      if (!meeting.missing.empty() || meeting.present.size() > 1)
        explained.insert(those.begin(), those.end());
  const std::vector<std::vector<Edge>> edges = all_edges(now);
  // Those that wait for the same in one line, in the order of the first of them.
  std::vector<std::pair<std::string, std::vector<int>>> causes;
  const auto add = [&](std::size_t rank, std::string cause) {
    const auto same =
        std::ranges::find(causes, cause, [](const auto& entry) { return entry.first; });
    if (same != causes.end()) return same->second.push_back(static_cast<int>(rank));
    causes.push_back({std::move(cause), {static_cast<int>(rank)}});
  };
  for (std::size_t rank = 0; rank < edges.size(); ++rank) {
    if (explained.contains(static_cast<int>(rank))) continue;
    for (const Edge& edge : edges[rank])
      add(rank, fmt::format("for rank {}: {}", show_rank(edge.to), edge.reason));
    for (const Rendezvous& row : now[rank].rendezvous)
      if (row.unmarked)
        add(rank,
            fmt::format("for itself: {}, to rank {}", row.stage, show_rank(row.envelope.peer)));
  }
  if (!causes.empty()) page += "\n  who waits for whom\n";
  for (std::size_t i = 0; i < std::min(causes.size(), most_causes); ++i)
    page += fmt::format("    {} {} {}\n", show_ranks(causes[i].second),
                        causes[i].second.size() == 1 ? "waits" : "wait", causes[i].first);
  if (causes.size() > most_causes)
    page += fmt::format("    and {} more\n", causes.size() - most_causes);
  if (const auto circle = find_standing_circle(now, earlier))
    page += fmt::format("    {}: a circle, {}\n", show_circle(*circle), show_way_out(*circle, now));
}

// In words how a message misses a receive by one thing only; empty if by none or by more, or if
// either is of MPI itself.
std::string near_miss(int rank, const Envelope& receive, const Envelope& message,
                      const std::string& where) {
  const bool same_comm = receive.comm == message.comm;
  const bool same_tag = receive.tag == any || receive.tag == message.tag;
  const bool same_peer = receive.peer == any || receive.peer == message.peer;
  if (!receive.is_of_user() || !message.is_of_user()) return {};
  if (message.peer < any) return {}; // several jobs have that rank
  if (!same_peer || same_comm == same_tag) return {};
  const std::string waits =
      fmt::format("rank {} waits for a message from rank {} with {}{}", rank,
                  show_rank(message.peer), receive.show_tag(), receive.show_comm());
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
          !line.empty()) { // one receive is enough to see it
        if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
        return;
      }
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Envelope& message : ranks[rank].unexpected)
      compare(rank, message, "has arrived and nobody receives it");
    for (const Rendezvous& row : ranks[rank].rendezvous) {
      const auto receiver = static_cast<std::size_t>(row.envelope.peer);
      if (!row.sending || !row.tagged || receiver >= ranks.size()) continue;
      Envelope message = row.envelope;
      message.peer = static_cast<int>(rank);
      const bool has_arrived =
          std::ranges::any_of(ranks[receiver].unexpected, [&](const Envelope& there) {
            return there.comm == message.comm && there.peer == message.peer &&
                   there.tag == message.tag;
          });
      if (!has_arrived) compare(receiver, message, "is waiting to be sent");
    }
  }
  if (lines.empty()) return;
  page += "\n  near misses\n";
  for (std::size_t i = 0; i < lines.size() && i < most_causes; ++i)
    page += "    " + lines[i] + "\n";
  if (lines.size() > most_causes)
    page += fmt::format("    and {} more\n", lines.size() - most_causes);
}

// Ranks that are alike.
struct Alike {
  std::string details;
  std::vector<int> ranks;
};

std::vector<Alike> find_alike(const std::vector<RankStatus>& ranks,
                              const std::vector<Waiting>& waiting, bool with_details) {
  std::vector<Alike> parts;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::string details;
    if (with_details) print_waiting(details, waiting[rank]);
    const auto [at, is_new] =
        known.try_emplace({show_state(ranks[rank], waiting[rank], true), details}, parts.size());
    if (is_new) parts.push_back({std::move(details), {}});
    parts[at->second].ranks.push_back(static_cast<int>(rank));
  }
  return parts;
}

// Without their details where that would be too many.
std::vector<Alike> parts_to_show(const std::vector<RankStatus>& ranks,
                                 const std::vector<Waiting>& waiting) {
  std::vector<Alike> parts = find_alike(ranks, waiting, true);
  return parts.size() > most_parts ? find_alike(ranks, waiting, false) : parts;
}

void print_ranks(std::string& page, const std::vector<RankStatus>& ranks,
                 const std::vector<Waiting>& waiting) {
  const std::vector<Alike> parts = parts_to_show(ranks, waiting);
  const bool too_many = find_alike(ranks, waiting, true).size() > most_parts;
  for (const Alike& part : parts) {
    if (&part == parts.data() + most_named) {
      page += fmt::format("  and {} more that differ\n", parts.size() - most_named);
      break;
    }
    const auto first = static_cast<std::size_t>(part.ranks.front());
    const std::string process =
        ranks[first].process == 0 || (ranks[first].kind == Kind::stopped && part.ranks.size() == 1)
            ? ""
            : fmt::format(" (process {}{})", show_process(ranks[first]),
                          part.ranks.size() == 1 ? ""
                                                 : fmt::format(" is rank {}", part.ranks.front()));
    if (!too_many || &part == &parts.front()) page += "\n";
    page += fmt::format("  {} {}{}\n", show_ranks(part.ranks),
                        show_state(ranks[first], waiting[first], part.ranks.size() > 1), process);
    if (!ranks[first].stack.empty()) {
      const std::string of =
          part.ranks.size() == 1 ? "" : fmt::format(" (rank {})", part.ranks.front());
      page += fmt::format("      {:<14}{}\n", "at" + of, ranks[first].stack);
    }
    page += part.details;
  }
  if (too_many)
    page += "\n  Receives, messages and connections are shown where fewer ranks differ.\n";
}

} // namespace

std::string hang_report(const std::string& where, const std::vector<RankStatus>& ranks,
                        const std::vector<RankStatus>& earlier, const std::string& job,
                        const char* speaker) {
  const std::vector<Waiting> waiting = read_all(ranks);
  const auto here = std::ranges::count_if(
      ranks, [](const RankStatus& rank) { return rank.kind != Kind::elsewhere; });
  std::string page = fmt::format("{}: what {} rank{}{} on {} {} waiting for\n", speaker, here,
                                 here == 1 ? "" : "s", job, where, here == 1 ? "is" : "are");
  const std::vector<Meeting> meetings = meetings_of(waiting);
  print_meetings(page, meetings, ranks, waiting);
  print_locks(page, ranks, waiting);
  print_edges(page, waiting, read_all(earlier), meetings);
  print_near_misses(page, waiting);
  print_ranks(page, ranks, waiting);
  return page;
}

bool shows_circle(const std::vector<RankStatus>& ranks) {
  return find_circle(binding_edges(read_all(ranks))).has_value();
}

std::vector<int> ranks_to_show(const std::vector<RankStatus>& ranks) {
  std::vector<int> chosen;
  for (const Alike& part : parts_to_show(ranks, read_all(ranks))) {
    const int first = part.ranks.front();
    const Kind kind = ranks[static_cast<std::size_t>(first)].kind;
    if (kind == Kind::answered || kind == Kind::silent || kind == Kind::stopped)
      chosen.push_back(first);
    if (chosen.size() == most_parts) break;
  }
  return chosen;
}

} // namespace macadam::boot
