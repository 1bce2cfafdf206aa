// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/spawn_request.h"
#include "boot/universe.h"
#include "sim/random.h"
#include "sim/scheduler.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace macadam::sim {

class Rank;

// What jobs ask of the world's launcher, beyond their own: what mpiexec keeps. All in virtual time.
class Exchange {
 public:
  // Something asked for. The asking rank keeps it, and the exchange while it is open.
  struct Question {
    Rank* rank = nullptr;
    bool open = true;
    int error = 0; // class, once it is not open; 0: none
    std::string text;
    boot::Met met;         // of a meeting
    boot::Spawned spawned; // of a spawn
    int job = -1;          // the same; -1: it has started none
    std::string port;      // of a look at a name; or that it waits at
  };
  using Asked = std::shared_ptr<Question>;

  // Starts a job of programs, so many processes of each; gives its number. Throws base::Error, with
  // nothing started, if there is no such program.
  using Start = std::function<int(const std::vector<boot::SpawnProgram>& programs,
                                  const std::vector<int>& ranks, const boot::Met& parent)>;
  // Ends all its processes.
  using End = std::function<void(int job)>;

  // `room`: how many processes may run at a time. `delay`: what an answer takes.
  Exchange(Scheduler& scheduler, Time delay, Start start, End end)
      : end_job(std::move(end)), scheduler_(scheduler), delay_(delay), start_(std::move(start)) {}

  const End end_job;

  int room = 1 << 30;
  int running = 0; // processes, of all jobs

  Asked spawn(Rank& rank, std::vector<boot::SpawnProgram> programs);
  std::string open_port(Rank& rank);
  void close_port(const Rank& rank, const std::string& port);
  Asked accept(Rank& rank, const std::string& port, std::optional<double> longest);
  Asked connect(Rank& rank, const std::string& port, std::optional<double> longest);
  // Of one side of MPI_Comm_join, by which the two tell theirs from others.
  std::uint32_t next_meeting() { return static_cast<std::uint32_t>(scramble(++last_meeting_)); }
  Asked publish(Rank& rank, const std::string& service, const std::string& port);
  Asked unpublish(Rank& rank, const std::string& service, const std::string& port);
  Asked look_up(Rank& rank, const std::string& service);
  Asked answer(Rank& rank) { return later(rank, {}); } // nothing but a moment
  // The rank has ended: what it owned goes, and those that wait for it are told.
  void end_of(const Rank& rank);

 private:
  struct Port {
    Rank* owner;
    std::deque<Asked> accepting, connecting;
  };
  struct Name {
    const Rank* owner;
    std::string port;
  };

  Asked ask(Rank& rank);
  Asked later(Rank& rank, std::function<void(Question&)> what);
  void close(const Asked& asked);
  void fail(const Asked& asked, int error, std::string text);
  void time_out(const Asked& asked, std::optional<double> longest, int error_class,
                const char* what);
  void match(Port& port);
  void introduce(const Asked& one, const Asked& other);
  void close_port(std::map<std::string, Port>::iterator port, const char* why);

  Scheduler& scheduler_;
  const Time delay_;
  const Start start_;
  std::map<std::string, Port> ports_;
  std::map<std::string, Name> names_;
  std::uint64_t last_port_ = 0;
  std::uint32_t last_meeting_ = 0;
};

// The launcher's ticket of a job of this world.
boot::JobTicket ticket_of(int job);
int job_of(const boot::JobTicket& ticket);

// Its face to one rank.
std::unique_ptr<boot::Universe> make_universe(Rank& rank, Exchange& exchange,
                                              std::optional<boot::Met> parent);

} // namespace macadam::sim
