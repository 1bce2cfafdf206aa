// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "tools/mpiexec/afar.h"
#include "tools/mpiexec/control_server.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace macadam::tools {

// Jobs that run on other machines alone, of this mpiexec or another one, as far as ranks here have
// met them. For each there is a memory as its own ranks have it (boot/met_job.h reads it), which
// has no rank of this machine. What is not known here is asked for when a rank wants it: that there
// is the job, and then the addresses of its ranks, one by one. As long as ranks here know the job,
// its end is asked for, too.
class FarJobs {
 public:
  using Id = ControlServer::Id;
  using Clock = std::chrono::steady_clock;

  // Both outlive the object.
  FarJobs(ControlServer& server, Afar& afar) : server_(server), afar_(afar) {}
  FarJobs(const FarJobs&) = delete;
  FarJobs& operator=(const FarJobs&) = delete;

  // Answers with the memory of the job, whose mpiexec is there; or, if the job has ranks here, too,
  // with the socket of who has the true one; or with what has failed.
  void meet(Id client, const boot::Secret& job, const Place& place);
  // Asks for the addresses that are newly wanted here.
  void exchange();
  // Forgets those that nobody here knows any more. To be called when due(), too.
  void look();
  [[nodiscard]] std::optional<Clock::time_point> due() const { return look_; }

 private:
  struct Job {
    Place place;
    std::vector<Id> clients; // that wait for it
    std::optional<boot::JobMemory> memory;
    std::uint32_t generation = 0;
    std::uint64_t watch = 0;              // as Afar::ask()
    std::vector<std::uint64_t> asked_for; // as JobMemory::wanted()
    Clock::time_point given;              // to a client last
  };
  void describe(const boot::Secret& secret, boot::PacketReader* answer, const base::Error* error);
  // The socket of this machine's part of the job's mpiexec, if the job has ranks here.
  std::string make_memory(const boot::Secret& secret, Job& job, boot::PacketReader& answer);
  void give(Job& job, Id client);
  void watch(const boot::Secret& secret, Job& job);
  void ask_for(const boot::Secret& secret, std::uint32_t rank);
  void end(const boot::Secret& secret, boot::RankState how);

  ControlServer& server_;
  Afar& afar_;
  std::map<boot::Secret, Job> jobs_;
  std::optional<Clock::time_point> look_;
};

// What another mpiexec is told of a job here.
boot::PacketWriter describe(const boot::JobMemory& memory);
// The generation that a job is in.
std::uint32_t generation_of(const boot::JobMemory& memory);

} // namespace macadam::tools
