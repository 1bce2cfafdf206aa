// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/ports.h"

#include "base/error.h"

namespace macadam::tools {
namespace {

constexpr std::size_t most_ports = 65536; // far more than anybody needs: they were not closed

} // namespace

std::string Ports::open(const boot::Secret& job, std::uint32_t rank, const std::string& host) {
  if (ports_.size() >= most_ports)
    base::fail(MPI_ERR_PORT, "{} ports are open, the most; close those that are not needed",
               ports_.size());
  const boot::PortKey key = boot::random_secret();
  ports_.emplace(key, Port{job, rank, {}, {}});
  return boot::show_port({host, server_.name(), key});
}

Ports::Entry Ports::find(const boot::PortKey& key) {
  const Entry found = ports_.find(key);
  if (found == ports_.end())
    base::fail(MPI_ERR_PORT, "the port was closed, or the job that opened it has ended");
  return found;
}

void Ports::close(std::string_view name, const boot::Secret& job, std::uint32_t rank) {
  const Entry found = find(boot::read_port(name).key);
  if (found->second.job != job || found->second.rank != rank)
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
    entry = entry->second.job == job ? close(entry) : std::next(entry);
}

void Ports::accept(Id id, std::string_view name, const boot::Met& who, const boot::Secret& job) {
  Port& port = find(boot::read_port(name).key)->second;
  if (port.job != job)
    base::fail(MPI_ERR_PORT, "the port is another job's; a job accepts at ports of its own");
  port.accepting.push_back({id, who, job});
  bring_together(port);
}

void Ports::connect(Id id, const boot::PortKey& key, const boot::Met& who,
                    const boot::Secret& job) {
  Port& port = find(key)->second;
  port.connecting.push_back({id, who, job});
  count(port, +1);
  bring_together(port);
}

// The one that connects is told first: if it has gone meanwhile, the other goes on waiting.
void Ports::bring_together(Port& port) {
  while (!port.accepting.empty() && !port.connecting.empty()) {
    const Caller accepting = port.accepting.front();
    if (!server_.is_there(accepting.id)) {
      port.accepting.pop_front();
      continue;
    }
    const Caller connecting = port.connecting.front();
    port.connecting.pop_front();
    count(port, -1);
    const std::uint32_t meeting = boot::random_meeting();
    if (!tell(connecting, accepting, meeting)) continue;
    port.accepting.pop_front();
    static_cast<void>(tell(accepting, connecting, meeting));
  }
}

// With the memory of the other's job, if it is one of this mpiexec: so the caller need not ask for
// it.
bool Ports::tell(const Caller& caller, const Caller& other, std::uint32_t meeting) {
  boot::PacketWriter packet;
  packet.value(other.who.job);
  packet.value(other.who.rank);
  packet.value(meeting);
  const boot::JobMemory* const memory = memory_of_(other.job);
  return server_.answer(caller.id, packet, memory != nullptr ? memory->fd() : -1);
}

void Ports::count(const Port& port, int change) {
  const boot::JobMemory* const memory = change != 0 ? memory_of_(port.job) : nullptr;
  if (memory == nullptr || !memory->is_local(static_cast<int>(port.rank))) return;
  memory->door(static_cast<int>(port.rank)).awaited.fetch_add(static_cast<std::uint32_t>(change));
}

void Ports::forget(Id id) {
  const auto is_its = [id](const Caller& caller) { return caller.id == id; };
  for (auto& [key, port] : ports_) {
    std::erase_if(port.accepting, is_its);
    count(port, -static_cast<int>(std::erase_if(port.connecting, is_its)));
  }
}

} // namespace macadam::tools
