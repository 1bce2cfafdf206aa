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
// are brought together in the order in which they came.
class Ports {
 public:
  using Id = ControlServer::Id;

  // A job's memory; null if it is none of this mpiexec.
  using MemoryOf = std::function<const boot::JobMemory*(const boot::Secret& job)>;

  // `server` outlives the object.
  Ports(ControlServer& server, MemoryOf memory_of)
      : server_(server), memory_of_(std::move(memory_of)) {}

  // A new one of this process; its name.
  std::string open(const boot::Secret& job, std::uint32_t rank, const std::string& host);
  // Throws MPI_ERR_PORT if the process has not opened it. Those that wait at it are told.
  void close(std::string_view name, const boot::Secret& job, std::uint32_t rank);
  void close_all_of(const boot::Secret& job);

  [[nodiscard]] bool has(const boot::PortKey& key) const { return ports_.contains(key); }
  // Throw MPI_ERR_PORT. Only the port's job accepts. `who`, of this job, is told to the other side.
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
    boot::Secret job;
    std::uint32_t rank;
    std::deque<Caller> accepting, connecting;
  };
  using Entry = std::map<boot::PortKey, Port>::iterator;

  Entry find(const boot::PortKey& key);
  Entry close(Entry entry);
  void bring_together(Port& port);
  // Tells the port's owner, who may be waiting at its door.
  void count(const Port& port, int change);
  [[nodiscard]] bool tell(const Caller& caller, const Caller& other, std::uint32_t meeting);

  ControlServer& server_;
  const MemoryOf memory_of_;
  std::map<boot::PortKey, Port> ports_;
};

} // namespace macadam::tools
