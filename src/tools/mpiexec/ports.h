// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/control.h"
#include "boot/job_memory.h"
#include "tools/mpiexec/control_server.h"

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace macadam::tools {

// The ports of mpiexec's jobs, and the processes that wait at them: who accepts and who connects
// are brought together in the order in which they came. The first of those that connect is
// introduced to the port's owner, which may accept it by itself (boot/door.h).
class Ports {
 public:
  using Id = ControlServer::Id;

  // A job's memory; null if it is none of this mpiexec.
  using MemoryOf = std::function<const boot::JobMemory*(const boot::Secret& job)>;

  // `server` outlives the object.
  Ports(ControlServer& server, MemoryOf memory_of)
      : server_(server), memory_of_(std::move(memory_of)) {}

  // A new one of `owner`, of this job, on this host; its name. `id` is the owner's, for
  // introductions.
  std::string open(Id id, const boot::Met& owner, const boot::Secret& job, std::string_view host);
  // Throws MPI_ERR_PORT if the process has not opened it. Those that wait at it are told.
  void close(std::string_view name, const boot::Secret& job, std::uint32_t rank);
  void close_all_of(const boot::Secret& job);

  [[nodiscard]] bool has(const boot::PortKey& key) const { return ports_.contains(key); }
  // Throw MPI_ERR_PORT. Only the port's job accepts. `who`, of this job, is told to the other side;
  // one that connects and has a meeting in it asks for that by a question in its memory.
  void accept(Id id, std::string_view name, const boot::Met& who, const boot::Secret& job);
  void connect(Id id, const boot::PortKey& key, const boot::Met& who, const boot::Secret& job);
  void forget(Id id);

 private:
  struct Caller {
    Id id;
    boot::Met who;
    boot::Secret job; // its
  };
  struct Port {
    Caller owner;
    std::deque<Caller> accepting, connecting;
  };
  using Entry = std::map<boot::PortKey, Port>::iterator;

  Entry find(const boot::PortKey& key);
  Entry close(Entry entry);
  void bring_together(Entry entry);
  void introduce(const Port& port);
  // Tells the port's owner, who may be waiting at its door.
  void count(const Port& port, int change);
  // That of a process of this mpiexec on this machine, or null.
  [[nodiscard]] boot::Door* door_of(const Caller& caller) const;
  // False if the port's owner has accepted it, or it has gone.
  [[nodiscard]] bool claim(const boot::PortKey& key, const Caller& connecting) const;
  static boot::PacketWriter packet_of(const Caller& caller, std::uint32_t meeting);
  // Descriptor of its job's memory; -1: it is none of this mpiexec.
  [[nodiscard]] int memory_of(const Caller& caller) const;
  [[nodiscard]] bool tell(const Caller& caller, const Caller& other, std::uint32_t meeting);

  ControlServer& server_;
  const MemoryOf memory_of_;
  std::map<boot::PortKey, Port> ports_;
};

} // namespace macadam::tools
