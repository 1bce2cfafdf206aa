// SPDX-License-Identifier: BSD-3-Clause
// Intercommunicators: made from two communicators, and merged into one.
#include "mpi/calls.h"
#include "mpi/comm_create.h"
#include "mpi/joint.h"
#include "mpi/process.h"

#include <algorithm>

namespace macadam::mpi {
namespace {

using boot::ProcessName;
using engine::Rank;
using engine::RankMap;

// What one group's leader tells the other's in MPI_Intercomm_merge.
struct ContextOffer {
  std::uint64_t context = 0; // its offer for the new communicator
  ProcessName leader;
  int high = 0; // the group comes second
  int pad = 0;
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

} // namespace

void intercomm_create(Process& self, Communicator& local_comm, int local_leader, MPI_Comm peer_comm,
                      int remote_leader, int tag, MPI_Comm* newintercomm) {
  check_intra(local_comm, "local_comm");
  check_leader(local_comm, local_leader, local_comm.size(), "local_leader");
  const auto way = [&]() -> Route {
    const auto* const peer = self.find<Communicator>(peer_comm, base::ObjectKind::communicator);
    if (peer == nullptr) {
      base::fail(MPI_ERR_COMM,
                 "peer_comm is no communicator; the local leader needs one in which rank "
                 "remote_leader ({}) leads the other group",
                 remote_leader);
    }
    check_leader(*peer, remote_leader, peer->peers(), "remote_leader");
    const std::uint64_t context =
        peer->p2p.context + static_cast<std::uint64_t>(SubContext::create);
    return {(*peer->p2p.peers)[remote_leader],
            {context, peer->rank(), tag},
            {context, remote_leader, tag},
            {},
            MPI_ERR_PROC_ABORTED};
  };
  *newintercomm = join_groups(self, local_comm, local_leader, way).handle();
}

void intercomm_merge(Process& self, Communicator& intercomm, int high, MPI_Comm* newintracomm) {
  if (!intercomm.inter()) {
    base::fail(MPI_ERR_COMM, "{} is an intracommunicator; only an intercommunicator can be merged",
               describe(intercomm));
  }
  compare_calls(self, intercomm);
  // The leader speaks for its group: all of a group pass the same `high`.
  ContextOffer mine{0, name_of(self, intercomm.local->ranks[0]), high != 0 ? 1 : 0};
  if (intercomm.rank() == 0) mine.context = self.instance->new_context(is_joint(intercomm));
  bcast_bytes(self, intercomm.inside, create_tag, &mine, sizeof mine, 0);
  ContextOffer theirs;
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
