// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/far_jobs.h"
#include "tools/mpiexec/links.h"
#include "tools/mpiexec/names.h"
#include "tools/mpiexec/ports.h"
#include "tools/mpiexec/relay.h"
#include "tools/mpiexec/spawner.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace macadam::tools {

// What mpiexec does for ranks, its own and others': reads requests and passes them to their places.
class Services final : private ControlServer::Desk, private Afar {
 public:
  class Directory : public Spawner::Launcher {
   public:
    // Null: it is none of this mpiexec's, or has ended.
    virtual RunningJob* find_job(const boot::Secret& secret) = 0;
    using Spawner::Launcher::find_job;
    [[nodiscard]] virtual Links::Own link_settings() const = 0;

   protected:
    ~Directory() = default;
  };

  // `directory` outlives the object. `socket` as for a ControlServer.
  Services(Directory& directory, const std::string& socket)
      : directory_(directory), server_(*this, socket) {}
  // There are other machines. `first` is the memory of the first job. Both outlive the object.
  void join(Head& head, const boot::JobMemory& first);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  // The socket where they are asked for; empty: the system has refused it.
  [[nodiscard]] const std::string& socket_name() const { return server_.name(); }
  // A job has ended: its ports are closed and its names unpublished.
  void on_end(const boot::JobMemory& job);
  // ... and so has all: other mpiexecs learn it.
  void finish() { links_.reset(); }
  // Tells other machines that a spawned job has.
  void tell_ended(const boot::Secret& job);
  // The spawn of this job is not over: if a rank of it fails, that is an error of the spawn alone.
  [[nodiscard]] bool is_unconfirmed(int job) const { return spawner_.is_unconfirmed(job); }
  // What another machine has said.
  void take(Frame frame);
  [[nodiscard]] std::string last_loss() const { return links_ ? links_->last_loss() : ""; }
  // As Links.
  bool note_end(pid_t pid, int status) { return links_ && links_->note_end(pid, status); }
  void tell_signal(int number) {
    if (links_) links_->tell_signal(number);
  }
  // Tells other machines what has changed in the memory of jobs, and asks for what is wanted there.
  void exchange();

  // Appends what to poll, and takes the answer to that: the entries from `first` on. To be called
  // when must_look_at() has come, too.
  void list(std::vector<pollfd>& polled);
  void take(const pollfd* first);
  [[nodiscard]] std::optional<ControlServer::Clock::time_point> must_look_at() const;

 private:
  using Id = ControlServer::Id;

  void on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) override;
  void on_confirmed(Id id) override;
  void on_gone(Id id) override;
  void send(const ControlServer::Origin& origin, const std::vector<std::byte>& packet,
            ControlServer::Then then) override;
  std::uint64_t ask(const Place& place, const boot::PacketWriter& request,
                    OnAnswer on_answer) override;
  void call_off(std::uint64_t asked) override;
  [[nodiscard]] bool is_ours(const Place& place) const;
  Links& links();
  // Requests of this mpiexec's part on another machine, or of another mpiexec.
  void serve_afar(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void connect(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void look_up(Id id, boot::PacketReader& rest);
  void meet(Id id, const boot::Secret& secret, const Place& place);
  void add_link(Id id);
  void change_name(Id id, const boot::RequestHead& head, boot::PacketReader& rest);
  void spawn(Id id, const boot::RequestHead& head, boot::PacketReader& rest, RunningJob& job);
  void relay(Id id, boot::PacketReader& rest);
  [[nodiscard]] const boot::JobMemory& memory_of(const boot::Secret& job, std::uint32_t generation);
  void answer_address_requests();
  void answer_watches();
  // A request of a rank of a job of this mpiexec.
  void serve(Id id, const boot::RequestHead& head, boot::PacketReader& rest, RunningJob& job);

  Directory& directory_;
  ControlServer server_;
  Ports ports_{server_, [this](const boot::Secret& job) {
                 const RunningJob* const found = directory_.find_job(job);
                 return found != nullptr ? &found->memory() : nullptr;
               }};
  Names names_{server_};
  Spawner spawner_{server_, directory_};
  std::optional<Relay> relay_; // if there are other machines
  std::optional<Links> links_; // once there was a link
  FarJobs far_jobs_{server_, *this};
  // Of other machines.
  struct Waiting {
    Id id;
    boot::Secret job;
    std::uint32_t generation;
    int rank; // -1: for the job's end
  };
  std::vector<Waiting> address_requests_, watches_;
  std::map<Id, std::uint64_t> passed_on_; // clients whose requests have gone over a link
  std::size_t listed_ = 0, served_ = 0;   // entries of the spawner, of the server
};

} // namespace macadam::tools
