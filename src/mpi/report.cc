// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report.h"

#include "mpi/process.h"
#include "mpi/window.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace macadam::mpi {
namespace {

using Json = nlohmann::json;
using engine::Envelope;
using engine::PeerState;
using engine::ReceiveStage;
using engine::SendStage;

constexpr int any = -1;        // in the report, of a source and of a tag
constexpr int other_jobs = -1; // ... and of a peer, whose row is a sum
// Of each list in a hang report, which has a bounded place to be left in.
constexpr std::size_t most_rows = 500;

// That come back at once; those for several requests begin with these, too.
constexpr std::array looking_functions = {"MPI_Test",     "MPI_Iprobe",
                                          "MPI_Improbe",  "MPI_Request_get_status",
                                          "MPI_Parrived", "MPI_Win_test"};

// Names are the program's and may be in any encoding; the page is in UTF-8.
std::string text_of(const Json& report) {
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// As the hang report names a process.
int place_of(const Process& self, engine::Rank process) {
  const bool own = process < static_cast<engine::Rank>(self.job->size());
  return own ? static_cast<int>(process)
             : -2 - static_cast<int>(self.runtime->processes().name(process).rank);
}

int place_of(const Process& self, const engine::Peer* peer) {
  return peer != nullptr ? place_of(self, peer->rank) : any;
}

// `place`: as place_of() says.
Json describe(const Process& self, const Envelope& envelope, int place, std::uint64_t bytes,
              const char* peer_key) {
  return {{"comm", name_of(self, envelope.context)},
          {peer_key, place},
          {"tag", envelope.tag == MPI_ANY_TAG ? any : envelope.tag},
          {"bytes", bytes}};
}

const char* text(SendStage stage) {
  switch (stage) {
  case SendStage::backlogged:
    return "waits for room or for the connection";
  case SendStage::awaits_ack:
    return "sent, waits until it is received";
  case SendStage::announced:
    return "waits for the receiver";
  case SendStage::unwritten:
    return "received, moves when either side waits";
  case SendStage::leaving:
  case SendStage::writing:
    return "data on the way";
  case SendStage::written:
    return "data written, the end is not announced yet";
  }
  return "";
}

const char* protocol(SendStage stage) {
  switch (stage) {
  case SendStage::backlogged:
  case SendStage::leaving:
  case SendStage::awaits_ack:
    return "EAGER";
  case SendStage::announced:
    return "SEND_RNDV";
  case SendStage::unwritten:
  case SendStage::writing:
  case SendStage::written:
    return "RECV_RNDV";
  }
  return "";
}

const char* text(PeerState state) {
  switch (state) {
  case PeerState::connecting:
    return "connecting";
  case PeerState::connected:
    return "connected";
  case PeerState::failed:
    return "failed";
  }
  return "";
}

// A field of /proc/self/status, "VmRSS" for one, in bytes; 0 if the system does not tell.
std::uint64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == field + ":") return status >> kib ? kib << 10 : 0;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

std::string variable_name(const char* setting) {
  std::string name = std::string("MACADAM_") + setting;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Json changed_settings(const base::Settings& settings) {
  const base::Settings defaults;
  Json changed = Json::object();
  for (const base::SettingRow& row : base::setting_rows()) {
    const std::string value = base::show(settings, row);
    if (value != base::show(defaults, row)) changed[variable_name(row.name)] = value;
  }
  return changed;
}

std::size_t connected_peers(const engine::Engine& engine, const engine::Transport& network) {
  std::size_t count = 0;
  engine.peers().for_each([&](const engine::Peer& peer) {
    if (peer.transport == &network && peer.state == PeerState::connected) ++count;
  });
  return count;
}

const char* text(Profile::Cause cause) {
  switch (cause) {
  case Profile::Cause::late_sender:
    return "late sender";
  case Profile::Cause::late_receiver:
    return "late receiver";
  case Profile::Cause::collective:
    return "collective";
  case Profile::Cause::none:
    break;
  }
  return "";
}

const char* text(engine::Protocol protocol) {
  switch (protocol) {
  case engine::Protocol::eager:
    return "EAGER";
  case engine::Protocol::hybrid:
    return "HYBRID";
  case engine::Protocol::send_rndv:
    return "SEND_RNDV";
  case engine::Protocol::recv_rndv:
    return "RECV_RNDV";
  }
  return "";
}

Json describe_time(const Profile& profile) {
  std::map<std::string_view, Profile::Function> functions;
  for (const auto& [name, function] : profile.functions()) {
    functions[name].calls += function.calls;
    functions[name].seconds += function.seconds;
  }
  Json rows = Json::array();
  for (const auto& [name, function] : functions)
    rows.push_back({{"name", name}, {"calls", function.calls}, {"seconds", function.seconds}});
  return {{"run", profile.seconds()}, {"functions", std::move(rows)}};
}

void add(Profile::Peer& sum, const Profile::Peer& peer) {
  sum.messages += peer.messages;
  sum.bytes += peer.bytes;
  sum.successive += peer.successive;
  sum.successive_bytes += peer.successive_bytes;
  for (std::size_t cause = 0; cause < Profile::causes; ++cause) {
    sum.waits[cause].times += peer.waits[cause].times;
    sum.waits[cause].seconds += peer.waits[cause].seconds;
  }
}

// Ranks of this job; those of other jobs have numbers of their own, which say nothing here, and are
// one. Of many, those that it has most to do with.
std::vector<std::pair<int, Profile::Peer>> main_peers(const Process& self) {
  std::vector<std::pair<int, Profile::Peer>> list;
  Profile::Peer others;
  for (const auto& [rank, peer] : self.profile->peers()) {
    if (rank < static_cast<engine::Rank>(self.job->size()))
      list.emplace_back(static_cast<int>(rank), peer);
    else
      add(others, peer);
  }
  if (list.size() > most_rows) {
    std::ranges::nth_element(list, list.begin() + most_rows, std::ranges::greater{},
                             [](const auto& row) { return row.second.bytes; });
    list.resize(most_rows);
  }
  std::ranges::sort(list, {}, [](const auto& row) { return row.first; });
  list.emplace_back(other_jobs, others);
  return list;
}

void describe_peers(const Process& self, Json& report) {
  Json& sent = report["sent"] = Json::array();
  Json& waits = report["waits"] = Json::array();
  for (const auto& [rank, peer] : main_peers(self)) {
    if (peer.messages != 0)
      sent.push_back({{"peer", rank},
                      {"messages", peer.messages},
                      {"bytes", peer.bytes},
                      {"successive", peer.successive},
                      {"successive_bytes", peer.successive_bytes}});
    for (std::size_t cause = 0; cause < Profile::causes; ++cause) {
      const Profile::Waits& row = peer.waits[cause];
      if (row.times != 0)
        waits.push_back({{"peer", rank},
                         {"cause", text(static_cast<Profile::Cause>(cause))},
                         {"times", row.times},
                         {"seconds", row.seconds}});
    }
  }
}

Json describe_sizes(const Profile& profile) {
  Json rows = Json::array();
  for (std::size_t digits = 0; digits < Profile::sizes - 1; ++digits) {
    for (std::size_t protocol = 0; protocol < engine::protocols; ++protocol) {
      const std::uint64_t messages = profile.sent()[digits][protocol];
      if (messages != 0)
        rows.push_back({{"below", std::uint64_t{1} << digits},
                        {"protocol", text(static_cast<engine::Protocol>(protocol))},
                        {"messages", messages}});
    }
  }
  return rows;
}

} // namespace

namespace {

// The job's ranks in a communicator that the page may have to name; none of one that is too large.
Json members_of(const Process& self, const Communicator& comm) {
  constexpr int most_members = 1024;
  Json members = Json::array();
  std::vector<const engine::RankMap*> groups{comm.p2p.local};
  if (comm.inter()) groups.push_back(comm.p2p.peers);
  for (const engine::RankMap* group : groups)
    for (int rank = 0; rank < group->size() && group->size() <= most_members; ++rank)
      members.push_back(place_of(self, (*group)[rank]));
  return members;
}

// The collectives that this rank is in, and how many it has called of each communicator.
void describe_collectives(const Process& self, Json& report) {
  Json& collectives = report["collectives"] = Json::array();
  Json& called = report["called"] = Json::array();
  for (const Communicator& comm : self.instance->live_communicators) {
    const std::string name = name_of(self, comm.p2p.context);
    const std::uint32_t count = comm.sequence.called();
    if (count > 0 && called.size() < most_rows)
      called.push_back(
          {{"id", comm.p2p.context}, {"count", count}, {"last", comm.sequence.last_called()}});
    comm.sequence.for_each_running([&](const coll::Collective& collective, bool persistent) {
      if (collectives.size() == most_rows) return;
      Json row = {{"id", comm.p2p.context},
                  {"comm", name},
                  {"function", collective.function},
                  {"number", collective.number},
                  {"persistent", persistent}};
      if (collectives.empty()) row["members"] = members_of(self, comm);
      collectives.push_back(std::move(row));
    });
  }
  for (const Gathering* const gathering : self.instance->gatherings) {
    if (collectives.size() == most_rows) return;
    Json members = Json::array();
    for (int rank = 0; rank < gathering->group.size(); ++rank)
      members.push_back(place_of(self, gathering->group[rank]));
    collectives.push_back({{"id", gathering->id},
                           {"comm", fmt::format("a group of {} ranks", gathering->group.size())},
                           {"function", self.function},
                           {"members", std::move(members)}});
  }
}

// Whether the program may do more than wait for what it waits for: it only looks for that, or has
// other threads.
bool may_do_more(const Process& self) {
  const std::string_view function = self.function;
  return self.thread_multiple || std::ranges::any_of(looking_functions, [&](const char* prefix) {
           return function.starts_with(prefix);
         });
}

// What a function waits for that is outside of its job, or of which no message tells.
const char* awaited_by(std::string_view function) {
  if (function == "MPI_Comm_accept") return "an MPI_Comm_connect to its port";
  if (function == "MPI_Comm_connect") return "an MPI_Comm_accept at its port";
  if (function == "MPI_Comm_join") return "the other side of its socket";
  return nullptr;
}

// Fences, which are counted and met as collectives are; locks that are held or waited for; and
// posts and completions that are waited for.
void describe_windows(const Process& self, Json& report) {
  Json& rows = report["windows"] = Json::array();
  for (const Window& window : self.instance->windows.live) {
    if (rows.size() == most_rows) return;
    const std::string& name = window.comm->name;
    const rma::Window::Standing standing = window.rma.standing();
    // The communicator is the window's own; its collectives have its own number.
    const std::uint64_t id = window.comm->p2p.context + 1;
    if (standing.fences > 0) report["called"].push_back({{"id", id}, {"count", standing.fences}});
    if (standing.in_fence)
      report["collectives"].push_back({{"id", id},
                                       {"comm", name},
                                       {"function", "MPI_Win_fence"},
                                       {"number", standing.fences},
                                       {"members", members_of(self, *window.comm)}});
    const auto in_job = [&](int rank) { return place_of(self, (*window.comm->p2p.local)[rank]); };
    Json holds = Json::array();
    window.rma.for_each_lock([&](int rank, bool exclusive) {
      if (holds.size() < most_rows)
        holds.push_back({{"rank", in_job(rank)}, {"exclusive", exclusive}});
    });
    const bool waits = standing.awaits_lock_of >= 0;
    const bool waits_for_post = standing.awaits_post_of >= 0;
    if (holds.empty() && !waits && !waits_for_post && standing.await_complete_of.empty()) continue;
    Json row = {{"id", window.comm->p2p.context}, {"name", name}, {"holds", std::move(holds)}};
    if (waits) {
      row["waits_for"] = in_job(standing.awaits_lock_of);
      row["members"] = members_of(self, *window.comm);
    }
    if (waits_for_post) row["post_of"] = in_job(standing.awaits_post_of);
    for (const int origin : standing.await_complete_of)
      if (row["complete_of"].size() < most_rows) row["complete_of"].push_back(in_job(origin));
    rows.push_back(std::move(row));
  }
}

void describe_round(const engine::PartitionedSend& send, Json& row) {
  const std::uint32_t unmarked = send.unmarked();
  row["unmarked"] = unmarked;
  row["stage"] = unmarked != 0 ? fmt::format("{} of {} partitions are not marked (MPI_Pready)",
                                             unmarked, send.data.number)
                               : fmt::format("{} of {} partitions are still to be sent", send.left,
                                             send.data.number);
}

std::string stage_of(const engine::PartitionedReceive& receive) {
  if (!receive.matched) return "the sender has not called MPI_Psend_init";
  return fmt::format("{} of the sender's {} partitions are still to be received", receive.left,
                     receive.sent_number);
}

// MPI's own, under a context that no communicator has: for a call that is yet to be made here.
bool is_invitation(const engine::Message& message) {
  return message.envelope.context >> 32 == no_leader;
}

} // namespace

std::string name_of(const Process& self, std::uint64_t context) {
  const std::uint64_t sub_context = context % sub_contexts;
  const std::uint64_t base = context - sub_context;
  std::string name = "communicator " + number_of(base);
  for (const Communicator& comm : self.instance->live_communicators) {
    if (comm.p2p.context == base && !comm.name.empty()) name = comm.name;
  }
  return sub_context == static_cast<std::uint64_t>(SubContext::p2p) ? name : name + " (collective)";
}

std::string hang_report(Process& self) {
  const engine::Engine& engine = *self.instance->engine;
  Json report = {
      {"waiting_in", self.function}, {"may_do_more", may_do_more(self)}, {"moves", engine.moves()}};
  Json& posted = report["posted"] = Json::array();
  Json& unexpected = report["unexpected"] = Json::array();
  Json& rendezvous = report["rendezvous"] = Json::array();
  Json& connections = report["connections"] = Json::array();

  describe_collectives(self, report);
  describe_windows(self, report);
  if (const char* const awaited = awaited_by(self.function);
      awaited != nullptr && report["collectives"].empty())
    report["waiting_for"] = awaited;
  engine.matcher().for_each_posted([&](const engine::ReceiveRequest& receive) {
    if (posted.size() == most_rows) return;
    Json row =
        describe(self, receive.envelope, place_of(self, receive.peer), receive.capacity, "source");
    row["announced"] = receive.announced;
    posted.push_back(std::move(row));
  });
  for (const BlockingProbe& probe : self.instance->probes) {
    if (posted.size() == most_rows) break;
    const engine::Team& team = probe.comm.p2p;
    const int place =
        probe.source == MPI_ANY_SOURCE ? any : place_of(self, (*team.peers)[probe.source]);
    Json row = describe(self, {team.context, probe.source, probe.tag}, place, 0, "source");
    row["probe"] = true;
    posted.push_back(std::move(row));
  }
  engine.matcher().for_each_unexpected([&](const engine::Message& message) {
    if (unexpected.size() == most_rows || is_invitation(message)) return;
    unexpected.push_back(
        describe(self, message.envelope, place_of(self, message.peer), message.bytes, "source"));
  });
  engine.for_each_send([&](const engine::SendRequest& send) {
    if (rendezvous.size() == most_rows) return;
    Json row = describe(self, send.envelope, place_of(self, send.peer), send.bytes, "peer");
    const bool partition = engine::PartitionedTable::is_part(send);
    row["protocol"] = partition ? "partition" : protocol(send.stage);
    row["stage"] = text(send.stage);
    row["sending"] = true;
    rendezvous.push_back(std::move(row));
  });
  engine.for_each_rendezvous_receive([&](const engine::ReceiveRequest& receive) {
    if (rendezvous.size() == most_rows) return;
    const bool reading = receive.stage == ReceiveStage::reading;
    Json row =
        describe(self, receive.envelope, place_of(self, receive.peer), receive.capacity, "peer");
    const bool partition = engine::PartitionedTable::is_part(receive);
    row["protocol"] = partition ? "partition" : reading ? "SEND_RNDV" : "RECV_RNDV";
    row["stage"] = reading ? "reads from the sender" : "the sender writes";
    row["sending"] = false;
    rendezvous.push_back(std::move(row));
  });
  engine.partitioned().for_each_running([&](const engine::Partitioned& round, bool sending) {
    if (rendezvous.size() == most_rows) return;
    const std::size_t bytes = round.data.number * round.data.bytes();
    Json row = describe(self, round.envelope, place_of(self, round.peer), bytes, "peer");
    row["protocol"] = "partitioned";
    row["sending"] = sending;
    if (sending)
      describe_round(static_cast<const engine::PartitionedSend&>(round), row);
    else
      row["stage"] = stage_of(static_cast<const engine::PartitionedReceive&>(round));
    rendezvous.push_back(std::move(row));
  });
  engine.peers().for_each([&](const engine::Peer& peer) {
    if (connections.size() == most_rows) return;
    connections.push_back({{"peer", place_of(self, &peer)}, {"state", text(peer.state)}});
  });
  return text_of(report);
}

std::string finalize_report(const Process& self) {
  Json report = {{"waiting_in", "MPI_Finalize"}, {"waiting_for", "the other ranks"}};
  describe_collectives(self, report);
  return text_of(report);
}

std::string final_report(Process& self) {
  Json counters = Json::array();
  for (const base::Counter& counter : self.counters.rows()) {
    counters.push_back({{"group", counter.group},
                        {"name", counter.name},
                        {"text", counter.text},
                        {"value", *counter.value}});
  }
  Json memory = {{"resident", status_bytes("VmRSS")},
                 {"pinned", status_bytes("VmPin")},
                 {"engine", self.instance->engine->memory_bytes()}};
  Json transports = Json::array();
  Json fallbacks = Json::array();
  for (const auto& network : self.instance->transports) {
    const char* const name = network->limits().name;
    memory[name] = network->memory_bytes();
    const std::size_t peers = connected_peers(*self.instance->engine, *network);
    transports.push_back(fmt::format("{}: {} peer{}", name, peers, peers == 1 ? "" : "s"));
    for (std::string& line : network->fallbacks())
      fallbacks.push_back(std::move(line));
  }
  Json report = {{"rank", self.job->rank()},
                 {"host", self.job->host()},
                 {"counters", std::move(counters)},
                 {"memory", std::move(memory)},
                 {"transports", std::move(transports)},
                 {"fallbacks", std::move(fallbacks)},
                 {"settings", changed_settings(self.settings)}};
  if (is_report_a_file(self.settings)) report["file"] = self.settings.report;
  if (self.profile) {
    self.profile->close();
    report["time"] = describe_time(*self.profile);
    report["sizes"] = describe_sizes(*self.profile);
    describe_peers(self, report);
  }
  return text_of(report);
}

} // namespace macadam::mpi
