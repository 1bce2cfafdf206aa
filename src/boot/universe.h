// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace macadam::boot {

// How any process of the same user finds a job that it is to talk to: where the job's launcher is
// reached, and the job's secret. Travels in messages, so a process that has it can hand it on to
// the others of its communicator. The content is the launcher's own affair.
using JobTicket = std::array<std::byte, 256>;

// Something that the universe does for a process meanwhile. Destroying it before it is done calls
// it off: nothing half done stays.
template <class Result>
class Pending {
 public:
  virtual ~Pending() = default;
  // Whether take() may be called. Does not wait; a wait in MPI asks every few hundred microseconds,
  // and makes progress between.
  [[nodiscard]] virtual bool done() noexcept = 0;
  // Once. Throws base::Error, with the class and the sentence, if it has failed.
  virtual Result take() = 0;
  // What was taken is wanted: a job that was spawned is ended if this is destroyed before.
  virtual void keep() noexcept {}
};
template <class Result>
using PendingResult = std::unique_ptr<Pending<Result>>;

// One command of MPI_Comm_spawn_multiple.
struct SpawnCommand {
  std::string program;
  std::vector<std::string> arguments; // without the program's name
  std::vector<int> counts; // that are acceptable, ascending, the largest is wanted ("soft")
  // What of the info object the launcher has to know: host, wdir, path, file, ...
  std::vector<std::pair<std::string, std::string>> info;
};

struct Spawned {
  JobTicket job;          // its processes are numbered command by command
  std::vector<int> ranks; // that were started, of each command
};

// What the two sides of MPI_Comm_accept and MPI_Comm_connect learn of each other.
struct Met {
  JobTicket job;          // of the other root
  std::uint32_t rank = 0; // the other root's, in its job
  // Tells this meeting from others at the same time, on both sides. Random, or 0 for a spawn.
  std::uint32_t meeting = 0;
};

// What lies beyond a process's own job: jobs that it starts, and those that it meets. mpiexec
// serves it on a machine, the simulator in a world. Functions are for one thread at a time. None of
// them waits for another job: open_port() and close_port() for an answer of the launcher, some 0.1
// ms, and the first that a program started alone calls until one serves it, some milliseconds.
// Times are in seconds; none: as long as the other side lives.
class Universe {
 public:
  virtual ~Universe() = default;

  // MPI_UNIVERSE_SIZE; nothing if nobody has said.
  [[nodiscard]] virtual std::optional<int> size() const = 0;
  // The job that has started this one, and who there.
  [[nodiscard]] virtual std::optional<Met> parent() const = 0;

  // A job of these commands, as ranks of the same launcher. Done once every process was started or
  // could not be. Fails as a whole, with nothing left running, if a command cannot have any of its
  // acceptable counts (MPI_ERR_SPAWN; the sentence says which limit or file). The caller keeps it
  // once it has talked to the new processes.
  virtual PendingResult<Spawned> spawn(std::vector<SpawnCommand> commands) = 0;

  // A port, good until it is closed or the job ends; shorter than MPI_MAX_PORT_NAME.
  virtual std::string open_port() = 0;
  // Throws MPI_ERR_PORT if this process has not opened it.
  virtual void close_port(std::string_view port) = 0;
  // The next process that connects to a port of this process. MPI_ERR_PORT.
  virtual PendingResult<Met> accept(std::string_view port, std::optional<double> longest) = 0;
  // Done when the other side accepts. MPI_ERR_PORT if the port is closed or its owner has ended,
  // MPI_ERR_OTHER with the sentence if it speaks another version or does not come in time.
  virtual PendingResult<Met> connect(std::string_view port, std::optional<double> longest) = 0;
  // The process at the other end of a connected socket that both have called MPI_Comm_join with.
  // The bytes on the socket are ours until it is done; the descriptor stays the caller's.
  virtual PendingResult<Met> join(int socket) = 0;

  // Names of one user, for ports. MPI_ERR_SERVICE, MPI_ERR_NAME.
  virtual PendingResult<bool> publish(std::string_view service, std::string_view port) = 0;
  virtual PendingResult<bool> unpublish(std::string_view service, std::string_view port) = 0;
  virtual PendingResult<std::string> look_up(std::string_view service) = 0;

  // This process's own job, for others.
  [[nodiscard]] virtual JobTicket own_ticket() = 0;
  // The job of a ticket, as this process sees it; the same object for the same job. The universe
  // owns it and keeps it until forget(). Fails with MPI_ERR_OTHER if the job has ended.
  virtual PendingResult<const Job*> meet(const JobTicket& ticket) = 0;
  // No communicator and no transport of this process knows the job any more.
  virtual void forget(const Job& job) = 0;
};

} // namespace macadam::boot
