// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/ports.h"

#include "base/error.h"

namespace macadam::tools {
namespace {

constexpr std::size_t most_ports = 65536; // far more than anybody needs: they were not closed

} // namespace

std::string Ports::open(Id id, const boot::Met& owner, const boot::Secret& job,
                        std::string_view host) {
  if (ports_.size() >= most_ports)
    base::fail(MPI_ERR_PORT, "{} ports are open, the most; close those that are not needed",
               ports_.size());
  const boot::PortKey key = boot::random_secret();
  ports_.emplace(key, Port{{id, owner, job}, {}, {}});
  return boot::show_port({std::string(host), server_.name(), key});
}

Ports::Entry Ports::find(const boot::PortKey& key) {
  const Entry found = ports_.find(key);
  if (found == ports_.end())
    base::fail(MPI_ERR_PORT, "the port was closed, or the job that opened it has ended");
  return found;
}

void Ports::close(std::string_view name, const boot::Secret& job, std::uint32_t rank) {
  const Entry found = find(boot::read_port(name).key);
  const Caller& owner = found->second.owner;
  if (owner.job != job || owner.who.rank != rank)
    base::fail(MPI_ERR_PORT, "the port was opened by another process, which alone may close it");
  close(found);
}

Ports::Entry Ports::close(Entry entry) {
  const Port port = std::move(entry->second);
  const Entry next = ports_.erase(entry);
  count(port, -static_cast<int>(port.connecting.size()));
  for (const auto* callers : {&port.accepting, &port.connecting})
    for (const Caller& caller : *callers)
      server_.refuse(caller.id,
                     base::Error(MPI_ERR_PORT, "the port was closed before another process came"));
  return next;
}

void Ports::close_all_of(const boot::Secret& job) {
  for (Entry entry = ports_.begin(); entry != ports_.end();)
    entry = entry->second.owner.job == job ? close(entry) : std::next(entry);
}

void Ports::accept(Id id, std::string_view name, const boot::Met& who, const boot::Secret& job) {
  const Entry port = find(boot::read_port(name).key);
  if (port->second.owner.job != job)
    base::fail(MPI_ERR_PORT, "the port is another job's; a job accepts at ports of its own");
  port->second.accepting.push_back({id, who, job});
  bring_together(port);
}

void Ports::connect(Id id, const boot::PortKey& key, const boot::Met& who,
                    const boot::Secret& job) {
  const Entry entry = find(key);
  Port& port = entry->second;
  port.connecting.push_back({id, who, job});
  count(port, +1);
  bring_together(entry);
  // Nobody who came before can be passed by.
  if (port.connecting.size() == 1) introduce(port);
}

// The one that connects is told first: if it has gone meanwhile, the other goes on waiting.
void Ports::bring_together(Entry entry) {
  auto& [key, port] = *entry;
  while (!port.accepting.empty() && !port.connecting.empty()) {
    const Caller accepting = port.accepting.front();
    if (!server_.is_there(accepting.id)) {
      port.accepting.pop_front();
      continue;
    }
    const Caller connecting = port.connecting.front();
    port.connecting.pop_front();
    count(port, -1);
    if (!claim(key, connecting)) continue;
    const std::uint32_t meeting =
        connecting.who.meeting != 0 ? connecting.who.meeting : boot::random_meeting();
    if (!tell(connecting, accepting, meeting)) continue;
    port.accepting.pop_front();
    static_cast<void>(tell(accepting, connecting, meeting));
  }
}

// The one that connects first, so that it knows the owner once that has accepted it.
void Ports::introduce(const Port& port) {
  const Caller& connecting = port.connecting.front();
  const std::uint32_t meeting = connecting.who.meeting;
  if (meeting == 0 || door_of(connecting) == nullptr || door_of(port.owner) == nullptr) return;
  if (server_.introduce(connecting.id, packet_of(port.owner, meeting), memory_of(port.owner)))
    server_.introduce(port.owner.id, packet_of(connecting, meeting), memory_of(connecting));
}

bool Ports::claim(const boot::PortKey& key, const Caller& connecting) const {
  const std::uint32_t meeting = connecting.who.meeting;
  boot::Door* const door = meeting != 0 ? door_of(connecting) : nullptr;
  return door == nullptr ||
         boot::door::answer(*door, boot::PortMark::of(key), meeting, boot::door::answered);
}

// With the memory of the other's job, if it is one of this mpiexec: so the caller need not ask for
// it.
bool Ports::tell(const Caller& caller, const Caller& other, std::uint32_t meeting) {
  return server_.answer(caller.id, packet_of(other, meeting), memory_of(other));
}

boot::PacketWriter Ports::packet_of(const Caller& caller, std::uint32_t meeting) {
  boot::PacketWriter packet;
  packet.value(caller.who.job);
  packet.value(caller.who.rank);
  packet.value(meeting);
  return packet;
}

int Ports::memory_of(const Caller& caller) const {
  const boot::JobMemory* const memory = memory_of_(caller.job);
  return memory != nullptr ? memory->fd() : -1;
}

boot::Door* Ports::door_of(const Caller& caller) const {
  const boot::JobMemory* const memory = memory_of_(caller.job);
  const auto rank = static_cast<int>(caller.who.rank);
  const bool is_here = memory != nullptr && rank < memory->size() && memory->is_local(rank);
  return is_here ? &memory->door(rank) : nullptr;
}

void Ports::count(const Port& port, int change) {
  boot::Door* const door = change != 0 ? door_of(port.owner) : nullptr;
  if (door != nullptr) door->awaited.fetch_add(static_cast<std::uint32_t>(change));
}

void Ports::forget(Id id) {
  const auto is_its = [id](const Caller& caller) { return caller.id == id; };
  for (auto& [key, port] : ports_) {
    if (is_its(port.owner)) port.owner.id = 0;
    std::erase_if(port.accepting, is_its);
    count(port, -static_cast<int>(std::erase_if(port.connecting, is_its)));
  }
}

} // namespace macadam::tools
