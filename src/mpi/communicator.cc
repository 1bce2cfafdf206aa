// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/communicator.h"

#include "mpi/calls.h"
#include "mpi/joint.h"
#include "mpi/names.h"
#include "mpi/process.h"
#include "mpi/request.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace macadam::mpi {
namespace {

// Hints for communicators that the standard defines (section "Communicator Info"). All are boolean
// and none changes what this library does, so they are only kept.
constexpr std::array known_hints = {
    Hints::Known{"mpi_assert_no_any_tag", "false"},
    Hints::Known{"mpi_assert_no_any_source", "false"},
    Hints::Known{"mpi_assert_exact_length", "false"},
    Hints::Known{"mpi_assert_allow_overtaking", "false"},
    Hints::Known{"mpi_assert_strict_persistent_collective_ordering", "false"},
};

bool is_boolean(std::string_view, std::string_view value) {
  return value == "true" || value == "false";
}

bool same_side(const Group& one, const Group& two) {
  return &one == &two;
}

} // namespace

Communicator::Communicator() : base::Object(base::ObjectKind::communicator), hints(known_hints) {}
Communicator::~Communicator() = default;

Communicator& make_communicator(Process& self, std::uint64_t context, Group& local, Group* remote,
                                Errhandler& errhandler) {
  GroupRef ours(&local, {&self}), theirs(remote, {&self});
  const engine::Networks& networks = self.instance->engine->networks();
  const bool connected = networks.connects_none(local.ranks, local.rank);
  const bool shares = remote == nullptr && networks.maps_all(local.ranks);
  Communicator& comm = *self.instance->communicators.make();
  comm.local = ours.release();
  comm.remote = theirs.release();
  comm.errhandler = &share(self, errhandler);
  const engine::RankMap* peers = remote != nullptr ? &remote->ranks : &local.ranks;
  comm.p2p = {0, local.rank, &local.ranks, peers};
  comm.p2p.connected = connected;
  comm.p2p.shares = shares;
  comm.collective = comm.inside = comm.p2p;
  comm.inside.peers = &local.ranks;
  set_context(comm, context);
  self.instance->live_communicators.push_back(comm);
  return comm;
}

void set_context(Communicator& comm, std::uint64_t context) {
  const auto sub_context = [&](SubContext which) {
    return context + static_cast<std::uint64_t>(which);
  };
  comm.p2p.context = sub_context(SubContext::p2p);
  comm.collective.context = sub_context(SubContext::collective);
  comm.inside.context = sub_context(comm.inter() ? SubContext::local : SubContext::collective);
  // Jobs number their machines each by itself.
  comm.machines.context = comm.inter() || is_joint(comm) ? 0 : sub_context(SubContext::local);
}

void destroy(Process& self, Communicator& comm) {
  comm.unlink();
  for (const Group* const group : {comm.local, comm.remote})
    if (group != nullptr && comm.p2p.context != no_context)
      self.instance->engine->drop_contexts(comm.p2p.context, sub_contexts, group->ranks);
  comm.boards.leave(self.instance->coll->panels);
  comm.machines.leave(self.instance->coll->panels);
  drop(self, comm.local);
  drop(self, comm.remote);
  drop(self, comm.errhandler);
  give_back(self.instance->communicators, comm);
}

std::string number_of(std::uint64_t context) {
  if (context >> 63 != 0)
    return fmt::format("{} with other jobs", (context >> sub_context_bits) % most_joint_contexts);
  return fmt::format("{} of rank {}", (context & 0xffffffff) / sub_contexts, context >> 32);
}

std::string describe(const Communicator& comm) {
  if (comm.of_library) return comm.name;
  return "communicator " + (comm.name.empty() ? number_of(comm.p2p.context) : comm.name);
}

void check_intra(const Communicator& comm, const char* name) {
  if (!comm.inter()) return;
  base::fail(MPI_ERR_COMM, "{} is {}, an intercommunicator; give an intracommunicator", name,
             describe(comm));
}

// The MPI functions that look at a communicator.

void comm_size(Process&, Communicator& comm, int* size) {
  *size = comm.size();
}
void comm_rank(Process&, Communicator& comm, int* rank) {
  *rank = comm.rank();
}
void comm_test_inter(Process&, Communicator& comm, int* flag) {
  *flag = comm.inter() ? 1 : 0;
}

void comm_remote_size(Process&, Communicator& comm, int* size) {
  if (!comm.inter()) {
    base::fail(MPI_ERR_COMM,
               "{} is an intracommunicator; only an intercommunicator has a remote group",
               describe(comm));
  }
  *size = comm.peers();
}

void comm_group(Process&, Communicator& comm, MPI_Group* group) {
  *group = share(*comm.local).handle();
}

void comm_remote_group(Process&, Communicator& comm, MPI_Group* group) {
  if (!comm.inter()) {
    base::fail(MPI_ERR_COMM,
               "{} is an intracommunicator; only an intercommunicator has a remote group",
               describe(comm));
  }
  *group = share(*comm.remote).handle();
}

void comm_compare(Process& self, Communicator& comm1, Communicator& comm2, int* result) {
  if (&comm1 == &comm2) {
    *result = MPI_IDENT;
    return;
  }
  if (comm1.inter() != comm2.inter()) {
    *result = MPI_UNEQUAL;
    return;
  }
  int worst = MPI_IDENT;
  const auto sides = {std::pair{comm1.local, comm2.local}, std::pair{comm1.remote, comm2.remote}};
  for (const auto& [one, two] : sides) {
    if (one == nullptr || same_side(*one, *two)) continue;
    int same = MPI_IDENT;
    group_compare(self, *one, *two, &same);
    worst = std::max(worst, same); // MPI_IDENT < MPI_SIMILAR < MPI_UNEQUAL
  }
  *result = worst == MPI_IDENT ? MPI_CONGRUENT : worst;
}

void comm_set_name(Process&, Communicator& comm, const char* comm_name) {
  comm.name = kept_name(comm_name);
}

void comm_get_name(Process& self, MPI_Comm comm, char* comm_name, int* resultlen) {
  // The null handle has a name, too.
  const auto* object = self.find<Communicator>(comm, base::ObjectKind::communicator);
  if (object == nullptr && comm != MPI_COMM_NULL) {
    base::fail(MPI_ERR_COMM, "comm is no communicator, or one that was freed");
  }
  hand_out_name(object != nullptr ? object->name : "MPI_COMM_NULL", comm_name, resultlen);
}

void comm_set_info(Process&, Communicator& comm, Info* info) {
  comm.hints.take(info, is_boolean);
}

void comm_get_info(Process& self, Communicator& comm, MPI_Info* info_used) {
  *info_used = make_info_used(self, comm.hints.entries());
}

} // namespace macadam::mpi
