// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/names.h"
#include "tools/mpiexec/ports.h"
#include "tools/mpiexec/spawner.h"

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
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  // Of the socket where they are asked for; empty: the system has refused it.
  [[nodiscard]] const std::string& socket_name() const { return server_.name(); }
  // A job has ended: its ports are closed and its names unpublished.
  void on_end(const boot::Secret& job);

  // Appends what to poll, and takes the answer to that: the entries from `first` on. To be called
  // when must_look_at() has come, too.
  void list(std::vector<pollfd>& polled);
  void take(const pollfd* first);
  [[nodiscard]] auto must_look_at() const { return server_.must_look_at(); }

 private:
  using Id = ControlServer::Id;

  void on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) override;
  void on_confirmed(Id id) override { spawner_.on_confirmed(id); }
  void on_gone(Id id) override;
  void connect(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void look_up(Id id, boot::PacketReader& rest);
  void meet(Id id, const boot::Secret& secret);
  // Of a rank of a job of this mpiexec.
  void serve(Id id, const boot::RequestHead& head, boot::PacketReader& rest, RunningJob& job);

  Directory& directory_;
  ControlServer server_{*this};
  Ports ports_{server_, [this](const boot::Secret& job) {
                 const RunningJob* const found = directory_.find_job(job);
                 return found != nullptr ? found->memory().fd() : -1;
               }};
  Names names_{server_};
  Spawner spawner_{server_, directory_};
  std::size_t listed_ = 0; // entries of the spawner
};

} // namespace macadam::tools
