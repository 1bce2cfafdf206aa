// SPDX-License-Identifier: BSD-3-Clause
// Intercommunicators: made from two communicators, and merged into one.
#include "mpi/calls.h"
#include "mpi/comm_create.h"
#include "mpi/process.h"

#include <algorithm>

namespace macadam::mpi {
namespace {

using boot::ProcessName;
using engine::Rank;
using engine::RankMap;

// What one group's leader tells the other's.
struct Side {
  std::uint64_t context = 0; // its offer for the new communicator
  int size = 0;
  int high = 0; // MPI_Intercomm_merge: the group comes second
  ProcessName leader;
};

void check_leader(const Communicator& comm, int rank, int size, const char* name) {
  if (rank < 0 || rank >= size) {
    base::fail(MPI_ERR_RANK, "{} is {}; {} has ranks 0 to {}", name, rank, describe(comm),
               size - 1);
  }
}

std::vector<Rank> members(const RankMap& ranks) {
  std::vector<Rank> list;
  for (int i = 0; i < ranks.size(); ++i)
    list.push_back(ranks[i]);
  return list;
}

// Processes as they are named to others, and as this one knows them.
std::vector<ProcessName> names_of(const Process& self, const RankMap& ranks) {
  std::vector<ProcessName> names;
  for (int i = 0; i < ranks.size(); ++i)
    names.push_back(self.runtime->processes().name(ranks[i]));
  return names;
}

std::vector<Rank> known(const Process& self, const std::vector<ProcessName>& names) {
  std::vector<Rank> list;
  for (const ProcessName& name : names) {
    const auto found = self.runtime->processes().find(name);
    if (!found)
      base::fail(MPI_ERR_INTERN, "rank {} of job {:#x} is of a job that this process does not know",
                 name.rank, name.job);
    list.push_back(*found);
  }
  return list;
}

} // namespace

void intercomm_create(Process& self, Communicator& local_comm, int local_leader, MPI_Comm peer_comm,
                      int remote_leader, int tag, MPI_Comm* newintercomm) {
  check_intra(local_comm, "local_comm");
  check_leader(local_comm, local_leader, local_comm.size(), "local_leader");
  const bool leading = local_comm.rank() == local_leader;

  // The leaders tell each other their groups, then everybody in their own. The other group's size
  // comes first, -1 if its leader could not be reached.
  Side mine, theirs;
  Communicator* peer = nullptr;
  if (leading) {
    peer = self.find<Communicator>(peer_comm, base::ObjectKind::communicator);
    if (peer == nullptr) {
      base::fail(MPI_ERR_COMM,
                 "peer_comm is no communicator; the local leader needs one in which rank "
                 "remote_leader ({}) leads the other group",
                 remote_leader);
    }
    check_leader(*peer, remote_leader, peer->peers(), "remote_leader");
    mine = {self.instance->new_context(), local_comm.size(), 0,
            self.runtime->processes().own_name()};
    swap_bytes(self, *peer, SubContext::create, remote_leader, tag, &mine, &theirs, sizeof mine);
  }
  std::uint64_t contexts[2] = {mine.context, theirs.context};
  bcast_bytes(self, local_comm, contexts, sizeof contexts, local_leader);
  bcast_bytes(self, local_comm, &theirs, sizeof theirs, local_leader);

  // The lists, in exchanges of equal length.
  const int longest = std::max(local_comm.size(), theirs.size);
  std::vector<ProcessName> ours = names_of(self, local_comm.local->ranks);
  ours.resize(static_cast<std::size_t>(longest));
  std::vector<ProcessName> names(static_cast<std::size_t>(longest));
  const std::size_t bytes = names.size() * sizeof(ProcessName);
  if (leading)
    swap_bytes(self, *peer, SubContext::create, remote_leader, tag, ours.data(), names.data(),
               bytes);
  bcast_bytes(self, local_comm, names.data(), bytes, local_leader);
  names.resize(static_cast<std::size_t>(theirs.size));
  std::vector<Rank> others = known(self, names);
  for (const Rank other : others) {
    if (local_comm.local->ranks.find(other) >= 0) {
      base::fail(MPI_ERR_COMM,
                 "rank {} of MPI_COMM_WORLD is in both groups; those of an "
                 "intercommunicator must be disjoint",
                 other);
    }
  }
  Group& remote = make_group(self, RankMap(std::move(others)), local_comm.local->session);
  *newintercomm = make_communicator(self, std::min(contexts[0], contexts[1]),
                                    share(*local_comm.local), &remote, *local_comm.errhandler)
                      .handle();
}

void intercomm_merge(Process& self, Communicator& intercomm, int high, MPI_Comm* newintracomm) {
  if (!intercomm.inter()) {
    base::fail(MPI_ERR_COMM, "{} is an intracommunicator; only an intercommunicator can be merged",
               describe(intercomm));
  }
  // The leader speaks for its group: all of a group pass the same `high`.
  Side mine{0, intercomm.size(), high != 0 ? 1 : 0,
            self.runtime->processes().name(intercomm.local->ranks[0])};
  if (intercomm.rank() == 0) mine.context = self.instance->new_context();
  bcast_bytes(self, intercomm.inside, create_tag, &mine, sizeof mine, 0);
  Side theirs;
  swap_by_leaders(self, intercomm, &mine, &theirs, sizeof mine);
  const bool first = mine.high != theirs.high ? mine.high == 0 : mine.leader < theirs.leader;

  std::vector<Rank> ranks = members((first ? intercomm.local : intercomm.remote)->ranks);
  const std::vector<Rank> behind = members((first ? intercomm.remote : intercomm.local)->ranks);
  ranks.insert(ranks.end(), behind.begin(), behind.end());
  Group& group = make_group(self, RankMap(std::move(ranks)), intercomm.local->session);
  const std::uint64_t context = first ? mine.context : theirs.context;
  *newintracomm = make_communicator(self, context, group, nullptr, *intercomm.errhandler).handle();
}

} // namespace macadam::mpi
