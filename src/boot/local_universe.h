// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/acquaintances.h"
#include "boot/at_port.h"
#include "boot/call.h"
#include "boot/local_job.h"
#include "boot/universe.h"

#include <map>
#include <memory>

namespace macadam::boot {

// What mpiexec does for a rank, by requests to its socket and to those of others (control.h). For a
// program that was started alone an mpiexec is started at the first need of one.
class LocalUniverse final : public Universe {
 public:
  // Both outlive the object; the memory is the job's.
  LocalUniverse(LocalJob& job, JobMemory& memory) : job_(job), memory_(memory) {}

  [[nodiscard]] std::optional<int> size() const override;
  [[nodiscard]] std::optional<Met> parent() const override;
  PendingResult<Spawned> spawn(std::vector<SpawnCommand> commands) override;
  std::string open_port() override;
  void close_port(std::string_view port) override;
  PendingResult<Met> accept(std::string_view port, std::optional<double> longest) override;
  PendingResult<Met> connect(std::string_view port, std::optional<double> longest) override;
  PendingResult<Met> join(int socket) override;
  PendingResult<bool> publish(std::string_view service, std::string_view port) override;
  PendingResult<bool> unpublish(std::string_view service, std::string_view port) override;
  PendingResult<std::string> look_up(std::string_view service) override;
  [[nodiscard]] JobTicket own_ticket() override;
  PendingResult<const Job*> meet(const JobTicket& ticket) override;
  void forget(const Job& job) override;
  // This process has left MPI: nothing of jobs is kept that it has parted from.
  void rest() { known_.drop_unused(); }

 private:
  // This job's mpiexec. Starts one beside a lone program. Throws MPI_ERR_OTHER. `gone` is the error
  // if the part of it that is asked has ended.
  Call::Whom launcher(int gone = MPI_ERR_OTHER);
  // Another's on this machine.
  [[nodiscard]] Call::Whom here(std::string socket) const;
  [[nodiscard]] PacketWriter begin(Request request) const;
  // A request, and which mpiexec it is sent to.
  struct Letter {
    Call::Whom whom;
    PacketWriter request;
  };
  // For who listens at a socket of another machine, through this job's mpiexec.
  Letter relayed(Where where, std::string_view host, std::string_view socket,
                 const PacketWriter& request, int gone);
  // What an introduction and the answers to accept and connect say. Knows the job.
  Met take_met(Call& call, PacketReader& packet);
  Met take_introduced(Call& call, PacketReader& packet);
  // The owner of the port.
  Met remember(const PortKey& port, const Met& owner);
  std::optional<Met> accept_introduced(const PortKey& port);
  PendingResult<Met> ask_to_accept(std::string_view port, std::optional<double> longest);
  PendingResult<Met> ask_to_connect(const Port& port, std::optional<double> longest);
  const Job* know(const Ticket& ticket, Call& call);
  const Job* find_here(const Ticket& ticket, const std::string& socket);
  void know_early(const JobTicket& ticket, Call& call);
  PendingResult<bool> change_name(Request change, std::string_view service, std::string_view port);

  LocalJob& job_;
  JobMemory& memory_;
  Acquaintances known_;
  // That this process has opened, and the calls that have, on which it is introduced; null: it is
  // not.
  std::map<PortKey, std::unique_ptr<Call>> own_ports_;
  DoorUse door_use_;
};

} // namespace macadam::boot
