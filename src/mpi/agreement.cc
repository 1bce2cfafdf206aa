// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/agreement.h"

#include "base/error.h"
#include "coll/level_rules.h"

#include <optional>
#include <string>

namespace macadam::mpi {
namespace {

// "rank 0 on host a and rank 2 on host b", where they differ.
std::string name_both(const boot::Processes& processes, engine::Rank peer) {
  const boot::ProcessName name = processes.name(peer);
  const bool same_job = name.job == processes.own_name().job;
  return fmt::format("rank {} on host {} and rank {} {}on host {}", processes.own_name().rank,
                     processes.job().host(), name.rank, same_job ? "" : "of another job ",
                     processes.host_of(peer));
}

const char* yes_or_no(std::uint8_t setting) {
  return setting != 0 ? "yes" : "no";
}

// Of what a rank takes, whichever network it will open. MACADAM_NETWORK=ofi leaves no shared memory
// for an inner level.
std::uint32_t digest_of_rules(const base::Settings& settings) {
  const auto digest = [&](engine::MessagesBy by) {
    return coll::digest(coll::RuleTable(settings.levels, by).rules());
  };
  const bool alone = settings.network == base::NetworkChoice::ofi;
  return 3 * digest(engine::MessagesBy::adapter) +
         digest(alone ? engine::MessagesBy::tcp_alone : engine::MessagesBy::tcp);
}

} // namespace

boot::Agreement agreement_of(const base::Settings& settings) {
  return {.rules = digest_of_rules(settings),
          .eager = static_cast<std::uint32_t>(settings.rdma_eager),
          .check = settings.check,
          .reproducible = settings.reproducible,
          .shares = settings.network == base::NetworkChoice::automatic ||
                    settings.network == base::NetworkChoice::shm};
}

void check_agreement(const boot::Processes& processes, engine::Rank peer,
                     const engine::Transport& network, const boot::Agreement& own) {
  const std::optional<boot::Agreement> its = processes.agreement_of(peer);
  if (!its || *its == own) return;
  const boot::Job& job = processes.job();
  const bool same_job = processes.name(peer).job == processes.own_name().job;
  if (its->rules != own.rules && same_job && job.local_size() < job.size())
    base::fail(MPI_ERR_OTHER,
               "{} have different rules of collectives for several machines, and would wait for "
               "each other: the line 'levels' in the file of 'macadam tune' "
               "($XDG_CONFIG_HOME/macadam/tuned.conf, or that below ~/.config) is not the same; "
               "copy the file to all machines of the job, or remove it from all; or "
               "MACADAM_NETWORK=ofi is set for some",
               name_both(processes, peer));
  if (its->reproducible != own.reproducible)
    base::fail(MPI_ERR_OTHER,
               "{} have different settings: MACADAM_REPRODUCIBLE is {} here and {} there, and they "
               "would add in different ways; give all ranks the same",
               name_both(processes, peer), yes_or_no(own.reproducible),
               yes_or_no(its->reproducible));
  if (its->check != own.check)
    base::fail(MPI_ERR_OTHER,
               "{} have different settings: MACADAM_CHECK is {} here and {} there, and messages "
               "have another form with it; give all ranks the same",
               name_both(processes, peer), yes_or_no(own.check), yes_or_no(its->check));
  if (its->shares != own.shares && processes.is_local(peer))
    base::fail(MPI_ERR_OTHER,
               "{} are on one machine and have different settings: by MACADAM_NETWORK one talks to "
               "the other over shared memory, and the other only over a network; set it alike for "
               "both",
               name_both(processes, peer));
  if (its->eager != own.eager && !network.limits().maps)
    base::fail(MPI_ERR_OTHER,
               "{} have different settings: rdma_eager is {} here and {} there, so one may send "
               "what the other has no room for; set MACADAM_RDMA_EAGER alike for all ranks, or "
               "copy the file of 'macadam tune' to all machines",
               name_both(processes, peer), own.eager, its->eager);
}

} // namespace macadam::mpi
