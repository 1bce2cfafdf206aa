// SPDX-License-Identifier: BSD-3-Clause
// How the first mpiexec is connected with the proxies, and what becomes of that.
#include "tools/mpiexec/cluster.h"

#include "base/error.h"
#include "boot/machine.h"
#include "tools/mpiexec/branch.h"
#include "tools/mpiexec/head.h"
#include "tools/mpiexec/proxy.h"
#include "tools/mpiexec/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace macadam::tools {

using boot::PacketReader;
using boot::PacketWriter;

namespace {

constexpr std::size_t least_for_branches = 16; // machines

} // namespace

Path::Path(const std::string& host, bool is_here, const RemoteShell& shell,
           const sigset_t& signal_mask, std::vector<std::uint32_t> those)
    : connection(host, {those.size() > 1 ? branch_word : proxy_word, is_here, {}, "ranks"}, shell,
                 signal_mask),
      machines(std::move(those)) {}

void Path::send(std::uint32_t place, FrameKind kind, const PacketWriter& body) {
  if (!is_branch()) return connection.send(kind, body);
  PacketWriter whole;
  whole.value(place);
  whole.value(kind);
  whole.append(body);
  connection.send(FrameKind::via, whole);
}

// With many machines, with about as many branches as each of these has machines. A batch system's
// starter asks that system each time, wherever it runs, so there are none.
void Cluster::connect() {
  std::vector<Machine> far;
  for (const std::string& host : placement_.hosts) {
    const auto machine = static_cast<Machine>(machines_.size());
    machines_.push_back(std::make_unique<RemoteMachine>(host, options_.silence_seconds));
    if (host == boot::host_name())
      connect_with({machine});
    else
      far.push_back(machine);
  }
  std::size_t each = 1;
  if (placement_.hosts.size() >= least_for_branches && shell_.is_shell)
    while (each * each < far.size())
      ++each;
  for (auto first = far.begin(); first != far.end();) {
    const auto last =
        first + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(each), far.end() - first);
    connect_with({first, last});
    first = last;
  }
}

void Cluster::connect_with(std::vector<Machine> those) {
  const std::string& host = machines_[those.front()]->name;
  Path& path = *paths_.emplace_back(std::make_unique<Path>(
      host, host == boot::host_name(), shell_, signals_.original_mask(), std::move(those)));
  for (std::uint32_t place = 0; place < path.machines.size(); ++place) {
    machines_[path.machines[place]]->path = &path;
    machines_[path.machines[place]]->place = place;
  }
  if (!path.is_branch()) return;
  PacketWriter body;
  body.value(shell_.is_shell);
  body.value(static_cast<std::uint32_t>(shell_.words.size()));
  for (const std::string& word : shell_.words)
    body.text(word);
  body.value(static_cast<std::uint32_t>(path.machines.size()));
  for (const Machine machine : path.machines)
    body.text(machines_[machine]->name);
  path.connection.send(FrameKind::connect, body);
}

// Machines that a branch has not reached for a while we try to reach ourselves: not everywhere does
// ssh lead from each machine to each other one.
void Cluster::connect_around_branches() {
  for (Machine machine = 0; machine < machines_.size(); ++machine) {
    const RemoteMachine& each = *machines_[machine];
    if (!each.hello && !each.lost && each.place != 0) connect_with({machine});
  }
}

std::vector<Cluster::Machine> Cluster::reached_by(const Path& path) const {
  std::vector<Machine> those;
  for (const Machine machine : path.machines)
    if (machines_[machine]->path == &path && machines_[machine]->is_there())
      those.push_back(machine);
  return those;
}

void Cluster::take(Path& path) {
  const bool goes_on = path.connection.stream().read_some();
  const std::string& host = path.connection.host();
  try {
    while (std::optional<Frame> frame = path.connection.stream().next()) {
      if (path.is_branch())
        hear_branch(path, std::move(*frame));
      else
        hear(path.machines.front(), std::move(*frame));
    }
  } catch (const Misunderstood& error) {
    return lose(reached_by(path), fmt::format("host {} {}", host, error.what()));
  } catch (const base::Error& error) {
    return lose(reached_by(path),
                fmt::format("what host {} says ends too early: {}", host, error.text));
  }
  if (goes_on) return;
  const std::vector<Machine> those = reached_by(path);
  if (those.empty()) return;
  const bool answered = std::ranges::any_of(
      those, [&](Machine machine) { return machines_[machine]->hello.has_value(); });
  std::string why = path.connection.explain_loss(answered);
  if (those.size() > 1)
    why += ", and with it the way to " + plural(static_cast<int>(those.size()) - 1, "other host");
  lose(those, why);
}

void Cluster::hear(Machine machine, Frame frame) {
  RemoteMachine& from = *machines_[machine];
  from.silence.end();
  from.heard = from.started; // starting many ranks takes a while
  on_frame(machine, std::move(frame));
}

void Cluster::hear_branch(Path& path, Frame frame) {
  const auto place = frame.body.value<std::uint32_t>();
  if (place >= path.machines.size()) throw Misunderstood("names a machine that there is not");
  const Machine machine = path.machines[place];
  const RemoteMachine& from = *machines_[machine];
  if (from.path != &path) return; // was too late
  switch (frame.kind) {
  case FrameKind::via: {
    const auto kind = frame.body.value<FrameKind>();
    hear(machine, {kind, std::move(frame.body)});
    break;
  }
  case FrameKind::lost:
    if (!from.hello && !ending_ && place != 0)
      connect_with({machine});
    else
      lose({machine}, frame.body.text());
    break;
  default:
    throw Misunderstood("says what is not its to say");
  }
}

// Of this machine's own proxy the system tells.
void Cluster::beat() {
  beat_ = Clock::now() + Silence::interval;
  const bool busy = is_machine_busy();
  PacketWriter body;
  body.value(busy);
  for (Machine machine = 0; machine < machines_.size(); ++machine) {
    RemoteMachine& each = *machines_[machine];
    if (!each.started || !each.is_there()) continue;
    each.send(FrameKind::beat, body);
    if (each.heard && !each.path->connection.is_here() && each.silence.count(busy))
      lose_silent(machine);
  }
}

// If all are silent that are reached through one machine, it is that one.
void Cluster::lose_silent(Machine machine) {
  const Path& path = *machines_[machine]->path;
  const double seconds = machines_[machine]->silence.allowed_seconds();
  const std::vector<Machine> those = reached_by(path);
  const bool all = std::ranges::all_of(
      those, [&](Machine other) { return machines_[other]->silence.is_long(); });
  if (those.size() == 1 || !all)
    return lose({machine}, fmt::format("host {} has said nothing for {} s",
                                       machines_[machine]->name, seconds));
  lose(those, fmt::format("host {}, and with it {} that are reached through it, has said nothing "
                          "for {} s",
                          path.connection.host(),
                          plural(static_cast<int>(those.size()) - 1, "other host"), seconds));
}

void Cluster::lose(const std::vector<Machine>& those, const std::string& why) {
  bool is_news = false;
  for (const Machine machine : those)
    if (machines_[machine]->is_there()) is_news = machines_[machine]->lost = true;
  if (!is_news) return;
  int others = 0;
  for (std::size_t rank = 0; started_ && rank < states_.size(); ++rank)
    if (!machines_[placement_.machines[rank]]->lost && is_alive(rank)) ++others;
  for (Machine machine = 0; machine < accounts_.size(); ++machine)
    if (!machines_[machine]->lost) others += static_cast<int>(accounts_[machine].others);
  fail(why + ending_others(others), 1);
  end_all();
}

} // namespace macadam::tools
