// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/relay.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace macadam::tools {

// Jobs of this mpiexec that run on other machines alone, as far as ranks here have met them. For
// each there is a memory as its own ranks have it (boot/met_job.h reads it), which has no rank of
// this machine. What is not known here is asked for when a rank wants it: that there is the job,
// and then the addresses of its ranks, one by one.
class FarJobs {
 public:
  using Id = ControlServer::Id;

  // Both outlive the object.
  FarJobs(ControlServer& server, Relay& relay) : server_(server), relay_(relay) {}
  FarJobs(const FarJobs&) = delete;
  FarJobs& operator=(const FarJobs&) = delete;

  // Answers with the memory of the job, which runs on `machine`, or with what has failed.
  void meet(Id client, const boot::Secret& job, Relay::Machine machine);
  // Asks for the addresses that are newly wanted here.
  void exchange();
  void on_ended(const boot::Secret& job);

 private:
  struct Job {
    Relay::Machine machine;
    std::vector<Id> clients; // that wait for it
    std::optional<boot::JobMemory> memory;
    std::vector<std::uint64_t> asked_for; // as JobMemory::wanted()
  };
  void describe(const boot::Secret& secret, boot::PacketReader* answer, const base::Error* error);
  void ask_for(const boot::Secret& secret, std::uint32_t rank);

  ControlServer& server_;
  Relay& relay_;
  std::map<boot::Secret, Job> jobs_;
};

} // namespace macadam::tools
