// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/spawn_request.h"
#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/ranks.h"
#include "tools/mpiexec/running_job.h"

#include <poll.h>
#include <vector>

namespace macadam::tools {

// The process that asks for a job; it may be on another machine.
struct SpawnParent {
  boot::JobTicket ticket{};
  std::int32_t job = 0; // its number
  std::int32_t rank = 0;
  std::vector<Variable> environment; // of its program
};
void write(boot::PacketWriter& packet, const SpawnParent& parent);
SpawnParent read_parent(boot::PacketReader& packet);

// Starts jobs for ranks that ask for them. All processes of a job are made first and wait at a
// gate, so that none of its programs runs if there cannot be enough of them; then they become their
// programs, and only when each has the caller is answered. Until the caller has confirmed the
// answer, its end ends the job.
class Spawner {
 public:
  using Id = ControlServer::Id;

  class Launcher {
   public:
    // A new job whose processes wait at the gate; 0: of the next number. Throws base::Error or
    // std::system_error, and leaves nothing then.
    virtual RunningJob& launch(std::vector<Program> programs, const SpawnParent& parent, int number,
                               const Gate& gate) = 0;
    // Null: it is there no more.
    virtual RunningJob* find_job(int number) = 0;
    // The spawn of the job is over: its caller has it, or it was called off.
    virtual void settle(int job, bool is_kept) = 0;
    // The variable as ranks of this program have it; empty: they have none.
    [[nodiscard]] virtual std::string variable(const Program& program, const char* name) const = 0;
    // Of a process that did not become its program: a sentence.
    [[nodiscard]] virtual std::string why_not_started(const RunningJob& job, int rank) const = 0;

   protected:
    ~Launcher() = default;
  };

  // Both outlive the object.
  Spawner(ControlServer& server, Launcher& launcher) : server_(server), launcher_(launcher) {}
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner();

  // Throws base::Error.
  void begin(Id id, const SpawnParent& parent, int number,
             const std::vector<boot::SpawnProgram>& programs);
  void on_confirmed(Id id);
  // The caller has asked for the job, and has not confirmed that it is there.
  [[nodiscard]] bool is_unconfirmed(int job) const;
  // The caller has gone. False if it has not asked for a job.
  bool on_gone(Id id);

  // Appends what to poll, and takes the answer: as many entries from `first` on.
  void list(std::vector<pollfd>& polled);
  void take(const pollfd* first);

 private:
  struct Start {
    Id id;
    int job;
    int pipe;                // at whose end all processes have started; -1 then
    std::vector<int> counts; // of processes, by programs
  };

  void launch(Id id, const SpawnParent& parent, int number, const std::vector<Program>& programs);
  void finish(Start& start);
  void drop(Start& start);

  ControlServer& server_;
  Launcher& launcher_;
  std::vector<Start> starts_;
};

} // namespace macadam::tools
