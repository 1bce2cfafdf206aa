// SPDX-License-Identifier: BSD-3-Clause
// What the parts of mpiexec on the machines say to each other, and whom it is passed on to.
#include "tools/mpiexec/cluster.h"

#include "base/error.h"
#include "boot/control.h"

#include <fmt/format.h>

namespace macadam::tools {

using boot::PacketReader;
using boot::PacketWriter;

// Null: nothing runs there any more.
RemoteMachine* Cluster::find(Machine machine) const {
  if (machine >= machines_.size()) throw Misunderstood("names a machine that there is not");
  RemoteMachine& found = *machines_[machine];
  return found.started && found.is_there() ? &found : nullptr;
}

std::uint32_t Cluster::running_on(Machine machine) const {
  std::uint32_t count = accounts_[machine].others;
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    if (placement_.machines[rank] == machine && is_alive(rank)) ++count;
  return count;
}

// The machine with most cores that no rank has; of equals the first, counted from `first` on.
Cluster::Machine Cluster::roomiest(Machine first) const {
  const auto room = [&](Machine machine) {
    return static_cast<int>(machines_[machine]->hello->cores) -
           static_cast<int>(running_on(machine));
  };
  Machine best = first;
  for (Machine i = 1; i < machines_.size(); ++i) {
    const auto machine = static_cast<Machine>((first + i) % machines_.size());
    if (find(machine) != nullptr && room(machine) > room(best)) best = machine;
  }
  return best;
}

void Cluster::on_request(Machine from, PacketReader& body) {
  auto to = body.value<Machine>();
  const auto id = body.value<std::uint64_t>();
  auto number = body.value<std::uint32_t>();
  const std::string packet = body.text();
  if (number == wanted_number) number = ++last_number_;
  if (to == any_machine) to = roomiest(from);
  if (find(to) == nullptr) return refuse(from, id, to);
  request(from, id, to, number, packet);
}

void Cluster::request(Machine from, std::uint64_t id, Machine to, std::uint32_t number,
                      const std::string& packet) {
  RemoteMachine* const there = find(to);
  unanswered_[{from, id}] = to;
  PacketWriter out;
  out.value(from);
  out.value(id);
  out.value(number);
  out.text(packet);
  there->send(FrameKind::request, out);
}

void Cluster::refuse(Machine from, std::uint64_t id, Machine to) {
  RemoteMachine* const there = find(from);
  if (there == nullptr) return;
  PacketWriter refusal;
  refusal.value(boot::AnswerHead{.error_class = boot::nobody_there});
  refusal.text(fmt::format("the last rank on host {} has ended, and mpiexec with it: nothing is "
                           "started or met there any more",
                           machines_[to]->name));
  PacketWriter out;
  out.value(to);
  out.value(id);
  out.value(false);
  out.text(refusal.view());
  there->send(FrameKind::answer, out);
}

// What has reached a machine after it had said its last word.
void Cluster::refuse_all(Machine to) {
  std::erase_if(unanswered_, [&](const auto& each) {
    if (each.second != to) return false;
    refuse(each.first.first, each.first.second, to);
    return true;
  });
}

// The part that has a link with that mpiexec; or is beside it, and needs no remote shell; or asks.
Cluster::Machine Cluster::choose_link(Machine asker, const std::string& mpiexec,
                                      const std::string& host) const {
  if (const auto known = links_.find(mpiexec); known != links_.end()) return known->second;
  for (Machine machine = 0; machine < machines_.size(); ++machine)
    if (machines_[machine]->hello->host == host && find(machine) != nullptr) return machine;
  return asker;
}

void Cluster::on_outside(Machine from, PacketReader& body) {
  const auto id = body.value<std::uint64_t>();
  const std::string mpiexec = body.text();
  const std::string host = body.text();
  const Machine to = choose_link(from, mpiexec, host);
  if (find(to) == nullptr) return; // who asks has ended meanwhile
  links_[mpiexec] = to;
  request(from, id, to, 0, body.text());
}

void Cluster::on_linked(Machine from, PacketReader& body, bool linked) {
  const std::string mpiexec = body.text();
  const auto known = links_.try_emplace(mpiexec, from).first;
  if (!linked && known->second == from) links_.erase(known);
}

// To a machine that has ended nothing needs to be said.
void Cluster::pass_on(Machine from, FrameKind kind, PacketReader& body) {
  auto to = body.value<Machine>();
  const auto id = body.value<std::uint64_t>();
  // Who calls off may not know yet who was asked.
  if (const auto asked = unanswered_.find({from, id});
      to == any_machine && asked != unanswered_.end())
    to = asked->second;
  if (to == any_machine) return;
  unanswered_.erase(kind == FrameKind::answer ? std::pair{to, id} : std::pair{from, id});
  RemoteMachine* const there = find(to);
  if (there == nullptr) return;
  PacketWriter out;
  out.value(from);
  out.value(id);
  if (kind == FrameKind::answer) {
    out.value(body.value<bool>());
    out.text(body.text());
  }
  there->send(kind, out);
}

void Cluster::on_ended(Machine from, PacketReader& body) {
  const auto job = body.value<boot::Secret>();
  for (Machine machine = 0; machine < machines_.size(); ++machine) {
    RemoteMachine* const there = machine == from ? nullptr : find(machine);
    if (there == nullptr) continue;
    PacketWriter out;
    out.value(from);
    out.value(job);
    there->send(FrameKind::ended, out);
  }
}

} // namespace macadam::tools
