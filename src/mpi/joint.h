// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/universe.h"
#include "mpi/agree.h"
#include "mpi/communicator.h"
#include "mpi/process.h"

#include <cstdint>
#include <optional>
#include <vector>

// Communicators of processes that do not know each other yet, as their jobs have just met. The
// leaders of the two groups tell each other who is in theirs, with the tickets of the jobs, and
// each tells its own group; then every process meets the jobs that it does not know. What goes
// wrong anywhere is an error of all.
namespace macadam::mpi {

// A process as it is named to others, and as this one knows it.
boot::ProcessName name_of(const Process& self, engine::Rank process);
std::vector<boot::ProcessName> names_of(const Process& self, const engine::RankMap& ranks);

// How the leader of a group reaches the other's: what it sends is matched by `out`, what it
// receives by `in`.
struct Route {
  engine::Rank other = 0;
  engine::Envelope out;
  engine::Envelope in;
  // Time of Transport::now() at which it stops waiting for the other one to come.
  std::optional<double> until;
  int gone = MPI_ERR_PROC_ABORTED; // the error if the other one has ended, or is late
  bool owned = false; // the other job ends with this call if it fails: it need not be told why
};

// An intercommunicator of `local`'s ranks and those of another group, which does the same. `way` is
// the leader's: it is called there alone, and what it throws is thrown at all of `local`.
template <class Way>
Communicator& join_groups(Process& self, Communicator& local, int leader, Way&& way);

// The route between two processes that their launchers have brought together. Meets the job.
Route route_to(Process& self, const boot::Met& met, std::optional<double> until);

// What lies beyond the job. Throws `error_class` if there is nothing, as this process has no
// launcher.
boot::Universe& universe_of(Process& self, int error_class);

// Waits for the launcher, making progress.
template <class Result>
Result await(Process& self, boot::Pending<Result>& pending) {
  constexpr unsigned look_us = 200;
  self.instance->wait_until([&] { return pending.done(); }, look_us);
  return pending.take();
}
template <class Result>
Result await(Process& self, const boot::PendingResult<Result>& pending) {
  return await(self, *pending);
}

// Throws `error_class` if a process is in both groups, which an intercommunicator cannot have.
void check_disjoint(const engine::RankMap& one, const engine::RankMap& other, int error_class);

// Knows the job from now on, and may talk to its processes. The same job at each call; this
// process's own for its own ticket.
const boot::Job& meet(Process& self, const boot::JobTicket& ticket);

// Whether a communicator may have processes of several jobs.
inline bool is_joint(const Communicator& comm) {
  return comm.p2p.context >> 63 != 0;
}

// All processes of the communicator have come so far, or have ended. Nobody is left waiting by
// others that end meanwhile. Gives the numbers of the other jobs that nobody needs to know once the
// communicator is gone: all of them, if all processes say of each other that it is the last that
// they have in common, or else those that have ended.
std::vector<std::uint32_t> part(Process& self, Communicator& comm);
// The same for all that have such a communicator, in MPI_Finalize.
void part_all(Process& self);
// The communicator is gone, of which part() has given these.
void forget(Process& self, const std::vector<std::uint32_t>& jobs);
// Those that have ended, and that no communicator has: of meetings that failed, for instance.
void forget_ended(Process& self);
// An instance has ended.
void forget_all(Process& self);

// --- Of the template -----------------------------------------------------------------------------

Communicator& join_groups(Process& self, Communicator& local, int leader, const Route* route,
                          const std::optional<base::Error>& error);

template <class Way>
Communicator& join_groups(Process& self, Communicator& local, int leader, Way&& way) {
  std::optional<Route> route;
  std::optional<base::Error> error;
  forget_ended(self);
  if (local.rank() == leader) error = attempt([&] { route = way(); });
  return join_groups(self, local, leader, route ? &*route : nullptr, error);
}

} // namespace macadam::mpi
