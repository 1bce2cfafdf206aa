// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/far_jobs.h"
#include "tools/mpiexec/names.h"
#include "tools/mpiexec/ports.h"
#include "tools/mpiexec/relay.h"
#include "tools/mpiexec/spawner.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace macadam::tools {

// What mpiexec does for ranks, its own and others': reads requests and passes them to their places.
class Services final : private ControlServer::Desk {
 public:
  class Directory : public Spawner::Launcher {
   public:
    // Null: it is none of this mpiexec's, or has ended.
    virtual RunningJob* find_job(const boot::Secret& secret) = 0;
    using Spawner::Launcher::find_job;

   protected:
    ~Directory() = default;
  };

  // `directory` outlives the object.
  explicit Services(Directory& directory) : directory_(directory) {}
  // There are other machines. `first` is the memory of the first job. Both outlive the object.
  void join(Head& head, const boot::JobMemory& first);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  // The socket where they are asked for; empty: the system has refused it.
  [[nodiscard]] const std::string& socket_name() const { return server_.name(); }
  // A job has ended: its ports are closed and its names unpublished.
  void on_end(const boot::Secret& job);
  // Tells other machines that a spawned job has.
  void tell_ended(const boot::Secret& job);
  // The spawn of this job is not over: if a rank of it fails, that is an error of the spawn alone.
  [[nodiscard]] bool is_unconfirmed(int job) const { return spawner_.is_unconfirmed(job); }
  // What another machine has said.
  void take(Frame frame);
  // Tells other machines what has changed in the memory of jobs, and asks for what is wanted there.
  void exchange();

  // Appends what to poll, and takes the answer to that: the entries from `first` on. To be called
  // when must_look_at() has come, too.
  void list(std::vector<pollfd>& polled);
  void take(const pollfd* first);
  [[nodiscard]] auto must_look_at() const { return server_.must_look_at(); }

 private:
  using Id = ControlServer::Id;

  void on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) override;
  void on_confirmed(Id id) override;
  void on_gone(Id id) override;
  void send(const ControlServer::Origin& origin, const boot::PacketWriter& packet,
            ControlServer::Then then) override;
  // Requests of this mpiexec's part on another machine.
  void serve_afar(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void connect(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void look_up(Id id, boot::PacketReader& rest);
  void meet(Id id, const boot::Secret& secret, const std::string& host);
  void change_name(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void spawn(Id id, const boot::RequestHead& head, boot::PacketReader& rest, RunningJob& job);
  void relay(Id id, boot::PacketReader& rest);
  void answer_address_requests();
  // A request of a rank of a job of this mpiexec.
  void serve(Id id, const boot::RequestHead& head, boot::PacketReader& rest, RunningJob& job);

  Directory& directory_;
  ControlServer server_{*this};
  Ports ports_{server_, [this](const boot::Secret& job) {
                 const RunningJob* const found = directory_.find_job(job);
                 return found != nullptr ? &found->memory() : nullptr;
               }};
  Names names_{server_};
  Spawner spawner_{server_, directory_};
  std::optional<Relay> relay_; // if there are other machines
  std::optional<FarJobs> far_jobs_;
  struct AddressRequest {
    Id id;
    boot::Secret job;
    int rank;
  };
  std::vector<AddressRequest> address_requests_; // of other machines
  std::size_t listed_ = 0;                       // entries of the spawner
};

} // namespace macadam::tools
