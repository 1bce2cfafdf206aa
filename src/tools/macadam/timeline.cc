// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace macadam::tools {
namespace {

using boot::TraceRecord;
using Json = nlohmann::json;
using Kind = TraceRecord::Kind;

// Tracks of a rank, beside those of its threads, which are 1, 2, ...
constexpr int messages_track = 1001;
constexpr int network_track = 1002;

constexpr std::uint64_t uncounted = std::numeric_limits<std::uint64_t>::max();

// Names of a header's list.
std::vector<std::string> names(const Json& header, const char* list) {
  return header.value(list, std::vector<std::string>{});
}

std::string_view name(const std::vector<std::string>& list, std::size_t at) {
  return at < list.size() ? std::string_view(list[at]) : std::string_view("?");
}

std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

RankTrace read_rank(const std::string& file) {
  boot::Trace trace = boot::read_trace(file);
  RankTrace rank;
  try {
    rank.header = Json::parse(trace.header);
    rank.job = rank.header.at("job").get<std::uint32_t>();
    rank.rank = rank.header.at("rank").get<int>();
    rank.size = rank.header.at("size").get<int>();
    rank.host = rank.header.at("host").get<std::string>();
    rank.clock = rank.header.at("clock").get<std::string>();
    rank.now = rank.header.at("now").get<double>();
    rank.wall = rank.header.at("wall").get<double>();
    rank.lost = rank.header.value("lost", std::uint64_t{0});
  } catch (const Json::exception& error) {
    throw std::runtime_error(file + " is damaged: " + error.what());
  }
  rank.records = std::move(trace.records);
  return rank;
}

void set_clock(RankTrace& rank, const ClockLine& line) {
  for (TraceRecord& record : rank.records) {
    record.at = line.time(record.at);
    record.until = line.time(record.until);
  }
  for (const char* list : {"network", "under_way"})
    for (Json& row : rank.header[list])
      row["at"] = line.time(row.value("at", 0.));
  rank.now = line.time(rank.now);
}

std::vector<Message> find_messages(const std::vector<RankTrace>& ranks) {
  // Job, communicator, tag, ordinal, sender, receiver.
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::int32_t, std::uint64_t, std::uint32_t,
                         std::uint32_t>;
  std::map<Key, std::pair<std::size_t, std::size_t>> sent;
  std::vector<Message> messages;
  const auto for_each = [&](bool sends, const auto& visit) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<std::string> steps = names(ranks[rank].header, "steps");
      const auto own = static_cast<std::uint32_t>(ranks[rank].rank);
      for (std::size_t at = 0; at < ranks[rank].records.size(); ++at) {
        const TraceRecord& record = ranks[rank].records[at];
        if (record.kind != Kind::step || record.ordinal == uncounted) continue;
        const std::string_view step = name(steps, record.name);
        if (sends ? step != "sent" : step != "matched" && step != "taken") continue;
        const std::uint32_t sender = sends ? own : record.peer;
        const std::uint32_t receiver = sends ? record.peer : own;
        visit(Key{ranks[rank].job, record.context, record.tag, record.ordinal, sender, receiver},
              rank, at);
      }
    }
  };
  for_each(true, [&](const Key& key, std::size_t rank, std::size_t at) { sent[key] = {rank, at}; });
  for_each(false, [&](const Key& key, std::size_t rank, std::size_t at) {
    const auto found = sent.find(key);
    if (found != sent.end())
      messages.push_back({found->second.first, rank, found->second.second, at});
  });
  return messages;
}

namespace {

class Writer {
 public:
  Writer(std::ostream& out, double origin) : out_(out), origin_(origin) {
    out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  }
  void finish() { out_ << "\n]}\n"; }

  // `more`: further members, from a comma on.
  void event(char phase, std::string_view name, std::size_t process, int track, double at,
             const std::string& more) {
    out_ << (first_ ? "" : ",\n")
         << fmt::format(R"({{"ph":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f}{}}})", phase,
                        json_text(name), process, track, microseconds(at - origin_), more);
    first_ = false;
  }
  void name_track(const char* what, std::size_t process, int track, const std::string& value) {
    event('M', what, process, track, origin_,
          fmt::format(R"(,"args":{{"name":{}}})", json_text(value)));
  }
  static double microseconds(double seconds) { return seconds * 1e6; }

 private:
  std::ostream& out_;
  double origin_;
  bool first_ = true;
};

// One rank's part of the timeline.
class RankWriter {
 public:
  RankWriter(Writer& out, const RankTrace& rank, std::size_t process, std::uint64_t& operations,
             TimelineSize& size)
      : out_(out), rank_(rank), process_(process), operations_(operations), size_(size),
        functions_(names(rank.header, "functions")), steps_(names(rank.header, "steps")),
        protocols_(names(rank.header, "protocols")) {
    for (const Json& row : rank.header.value("communicators", Json::array()))
      communicators_[row.value("id", std::uint64_t{0})] = row.value("name", "");
  }

  void write() {
    out_.name_track("process_name", process_, 0,
                    fmt::format("rank {} on {}", rank_.rank, rank_.host));
    out_.event('M', "process_sort_index", process_, 0, rank_.now,
               fmt::format(R"(,"args":{{"sort_index":{}}})", process_));
    int threads = 1;
    for (const TraceRecord& record : rank_.records) {
      threads = std::max(threads, record.thread + 1);
      if (record.kind == Kind::call)
        call(name(functions_, record.name), record.thread, record.at, record.until, "");
      else if (record.kind == Kind::pause)
        pause(record);
      else
        step(record);
    }
    for (const Json& row : rank_.header.value("under_way", Json::array()))
      call(row.value("name", ""), row.value("thread", 0), row.value("at", 0.), rank_.now,
           R"(,"args":{"under way":true})");
    for (const Json& row : rank_.header.value("network", Json::array()))
      out_.event(
          'i', row.value("what", ""), process_, network_track, row.value("at", 0.),
          fmt::format(R"(,"s":"t","args":{{"posted":{}}})", row.value("count", std::uint64_t{0})));
    while (!open_.empty()) { // not complete when the file was written
      const auto [operation, open] = *open_.begin();
      end(operation, open, rank_.now);
    }
    for (int thread = 0; thread < threads; ++thread)
      out_.name_track("thread_name", process_, thread + 1,
                      thread == 0 ? "calls" : fmt::format("calls of thread {}", thread));
    out_.name_track("thread_name", process_, messages_track, "messages");
    out_.name_track("thread_name", process_, network_track, "network");
  }

 private:
  // A send or receive by rendezvous that is under way.
  struct Open {
    std::uint64_t number;
    std::string name;
    bool sends;
  };

  void call(std::string_view function, int thread, double at, double until,
            const std::string& more) {
    ++size_.calls;
    out_.event(
        'X', function, process_, thread + 1, at,
        fmt::format(R"(,"cat":"call","dur":{:.3f}{})", Writer::microseconds(until - at), more));
  }

  void pause(const TraceRecord& record) {
    ++size_.pauses;
    size_.in_pauses += record.ordinal;
    out_.event('X', "more than could be noted", process_, messages_track, record.at,
               fmt::format(R"(,"dur":{:.3f},"args":{{"short messages sent":{},"bytes sent":{}}})",
                           Writer::microseconds(record.until - record.at), record.ordinal,
                           record.bytes));
  }

  // In the field's words, RTS for SENDER_READY and RTR for RECEIVER_READY.
  [[nodiscard]] std::string text(const TraceRecord& record, bool sends) const {
    const std::string_view step = name(steps_, record.name);
    const std::string_view protocol = name(protocols_, record.protocol);
    const bool offered = protocol == "HYBRID" || protocol == "SEND_RNDV";
    const std::string what = offered ? fmt::format("RTS ({})", protocol) : std::string(protocol);
    if (step == "sent") return fmt::format("{} to {}", what, record.peer);
    if (step == "matched") return fmt::format("{} from {}", what, record.peer);
    if (step == "kept") return fmt::format("{} from {}, unexpected", what, record.peer);
    if (step == "taken") return fmt::format("unexpected {} of {} received", what, record.peer);
    if (step == "crossed" && protocol == "HYBRID")
      return fmt::format("a copy is left behind (HYBRID) for {}", record.peer);
    if (step == "crossed") return fmt::format("RTR of {} has crossed the RTS", record.peer);
    if (step == "released") return fmt::format("received by {}", record.peer);
    if (step == "announced") return fmt::format("announcement (RTR) to {}", record.peer);
    if (step == "announcement") return fmt::format("announcement (RTR) from {}", record.peer);
    if (step == "data") return fmt::format("data {} {}", sends ? "to" : "from", record.peer);
    if (step == "FIN sent") return fmt::format("FIN to {}", record.peer);
    if (step == "FIN arrived") return fmt::format("FIN from {}", record.peer);
    return fmt::format("{}: {}", step, record.peer);
  }

  [[nodiscard]] std::string arguments(const TraceRecord& record) const {
    const auto communicator = communicators_.find(record.context);
    return fmt::format(R"(,"args":{{"peer":{},"tag":{},"bytes":{},"communicator":{}}})",
                       record.peer, record.tag, record.bytes,
                       json_text(communicator == communicators_.end()
                                     ? fmt::format("{}", record.context)
                                     : communicator->second));
  }

  void step(const TraceRecord& record) {
    ++size_.steps;
    const std::string_view step = name(steps_, record.name);
    if (step == "connecting" || step == "connected" || step == "failed") {
      const std::string peer = fmt::format("{}: {}", step, record.peer);
      return out_.event('i', peer, process_, network_track, record.at, R"(,"s":"t")");
    }
    if (record.operation == 0)
      return out_.event('i', text(record, true), process_, messages_track, record.at,
                        R"(,"s":"t")" + arguments(record));
    auto open = open_.find(record.operation);
    if (open == open_.end()) {
      if (step == "finished") return; // its beginning is lost
      open = open_.emplace(record.operation, begin(record)).first;
    }
    if (step == "finished") return end(record.operation, open->second, record.at);
    out_.event('n', text(record, open->second.sends), process_, messages_track, record.at,
               identity(open->second) + arguments(record));
  }

  [[nodiscard]] static std::string identity(const Open& open) {
    return fmt::format(R"(,"cat":"rendezvous","id":"{:#x}")", open.number);
  }

  Open begin(const TraceRecord& record) {
    const bool sends = name(steps_, record.name) == "sent";
    Open open{
        ++operations_,
        fmt::format("{} by {}", sends ? "send" : "receive", name(protocols_, record.protocol)),
        sends};
    out_.event('b', open.name, process_, messages_track, record.at,
               identity(open) + arguments(record));
    return open;
  }

  void end(std::uint64_t operation, const Open& open, double at) {
    out_.event('e', open.name, process_, messages_track, at, identity(open));
    open_.erase(operation);
  }

  Writer& out_;
  const RankTrace& rank_;
  const std::size_t process_;
  std::uint64_t& operations_;
  TimelineSize& size_;
  const std::vector<std::string> functions_, steps_, protocols_;
  std::unordered_map<std::uint64_t, std::string> communicators_;
  std::map<std::uint64_t, Open> open_;
};

// The thread whose call a step is a part of: calls are noted when they end, so it comes later.
int thread_of(const RankTrace& rank, std::size_t step) {
  const double at = rank.records[step].at;
  constexpr std::size_t most_looks = 10000;
  const std::size_t end = std::min(rank.records.size(), step + most_looks);
  for (std::size_t i = step; i < end; ++i) {
    const TraceRecord& record = rank.records[i];
    if (record.kind == Kind::call && record.at <= at && record.until >= at) return record.thread;
  }
  return 0;
}

// Arrows from where messages were sent to where they were received.
void write_messages(Writer& out, const std::vector<RankTrace>& ranks,
                    const std::vector<Message>& messages) {
  std::uint64_t number = 0;
  for (const Message& message : messages) {
    ++number;
    const auto end = [&](char phase, std::size_t rank, std::size_t at, const char* more) {
      out.event(phase, "message", rank + 1, thread_of(ranks[rank], at) + 1,
                ranks[rank].records[at].at,
                fmt::format(R"(,"cat":"message","id":{}{})", number, more));
    };
    end('s', message.sender, message.sent, "");
    end('f', message.receiver, message.seen, R"(,"bp":"e")");
  }
}

} // namespace

TimelineSize write_timeline(std::ostream& out, const std::vector<RankTrace>& ranks,
                            const std::vector<Message>& messages) {
  TimelineSize size;
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const RankTrace& rank : ranks) {
    first = std::min(first, rank.now);
    last = std::max(last, rank.now);
    for (const TraceRecord& record : rank.records)
      first = std::min(first, record.at);
  }
  size.seconds = last - first;
  Writer writer(out, first);
  std::uint64_t operations = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    RankWriter(writer, ranks[rank], rank + 1, operations, size).write();
  write_messages(writer, ranks, messages);
  writer.finish();
  return size;
}

} // namespace macadam::tools
