// SPDX-License-Identifier: BSD-3-Clause
// New communicators from an old one. Each costs one agreement on a context, which the leader (rank
// 0 of the new communicator) chooses; see Instance::new_context().
#include "mpi/comm_create.h"

#include "coll/algorithms.h"
#include "coll/batch.h"
#include "mpi/agree.h"
#include "mpi/calls.h"
#include "mpi/joint.h"
#include "mpi/process.h"
#include "mpi/session.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace macadam::mpi {
namespace {

using engine::Envelope;
using engine::Rank;
using engine::RankMap;

std::uint64_t context_of(const Communicator& comm, SubContext sub_context) {
  return comm.p2p.context + static_cast<std::uint64_t>(sub_context);
}

// --- Duplicates ----------------------------------------------------------------------------------

// All ranks learn the context of their new communicator (`extra`), which holds the offer of this
// rank. In an intercommunicator the two leaders settle on the smaller of their offers.
coll::Task agree_on_context(coll::Collective& self) {
  auto& made = *static_cast<Communicator*>(self.arguments.extra);
  std::uint64_t context = made.p2p.context;
  engine::Team inside = *self.team;
  if (made.inter()) {
    if (self.rank() == 0) {
      std::uint64_t theirs = 0;
      coll::Batch swap(self);
      swap.receive(0, self.bytes(&theirs, sizeof theirs));
      swap.send(0, self.bytes(&made.p2p.context, sizeof theirs));
      co_await swap;
      context = std::min(context, theirs);
    }
    inside.peers = inside.local;
    inside.context += static_cast<std::uint64_t>(SubContext::local) -
                      static_cast<std::uint64_t>(SubContext::collective);
  }
  coll::Comm local = self;
  local.team = &inside;
  coll::Task spread = coll::bcast_binomial(local, local.bytes(&context, sizeof context), 0);
  co_await spread;
  set_context(made, context);
}

// The new communicator, whose context is still to be agreed on, and the collective that does that.
CommunicatorRef begin_duplicate(Process& self, Communicator& comm, CollectiveCall& call) {
  const std::uint64_t offer =
      comm.rank() == 0 ? self.instance->new_context(is_joint(comm)) : no_context;
  Group* remote = comm.remote != nullptr ? &share(*comm.remote) : nullptr;
  CommunicatorRef made(
      &make_communicator(self, offer, share(*comm.local), remote, *comm.errhandler), {&self});
  call = {"duplicate of a communicator", &agree_on_context, {}, nullptr};
  call.arguments.extra = made.get();
  return made;
}

void duplicate(Process& self, Communicator& comm, MPI_Comm* newcomm, Info* info) {
  CollectiveCall call;
  CommunicatorRef made = begin_duplicate(self, comm, call);
  run(self, comm, std::move(call));
  if (comm.attributes) made->attributes = comm.attributes->copy(comm.handle());
  made->topology = comm.topology;
  comm_set_info(self, *made, info);
  *newcomm = made.release()->handle();
}

void duplicate_later(Process& self, Communicator& comm, MPI_Comm* newcomm, Info* info,
                     MPI_Request* request) {
  // The attributes are those of the time of the call.
  std::unique_ptr<Attributes> attributes;
  if (comm.attributes) attributes = comm.attributes->copy(comm.handle());
  CollectiveCall call;
  CommunicatorRef made = begin_duplicate(self, comm, call);
  made->attributes = std::move(attributes);
  made->topology = comm.topology;
  comm_set_info(self, *made, info);
  launch(self, comm, std::move(call), request);
  *newcomm = made.release()->handle();
}

// --- Parts ---------------------------------------------------------------------------------------

// What each rank tells the others to split a communicator.
struct Choice {
  std::int64_t color;
  std::int64_t key;
  std::uint64_t context; // its offer, should it be the leader
};

// The ranks of one color, ordered by key and then by old rank.
struct Part {
  std::vector<Rank> members;
  std::uint64_t context = 0; // of the leader
};

Part part_of(const std::vector<Choice>& choices, const RankMap& ranks, std::int64_t color) {
  std::vector<int> chosen;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (choices[static_cast<std::size_t>(rank)].color == color) chosen.push_back(rank);
  }
  const auto key = [&](int rank) { return choices[static_cast<std::size_t>(rank)].key; };
  std::ranges::stable_sort(chosen, {}, key);
  Part part;
  for (const int rank : chosen)
    part.members.push_back(ranks[rank]);
  if (!chosen.empty()) part.context = choices[static_cast<std::size_t>(chosen[0])].context;
  return part;
}

// What the ranks of the remote group chose, told by their leader to ours and by ours to us.
std::vector<Choice> remote_choices(Process& self, Communicator& inter,
                                   const std::vector<Choice>& local) {
  std::vector<Choice> remote(static_cast<std::size_t>(inter.peers()));
  const std::size_t bytes = remote.size() * sizeof(Choice);
  if (inter.rank() == 0) {
    swap_bytes(self, (*inter.p2p.peers)[0], {context_of(inter, SubContext::create), 0, create_tag},
               0, local.data(), local.size() * sizeof(Choice), remote.data(), bytes);
  }
  bcast_bytes(self, inter.inside, create_tag, remote.data(), bytes, 0);
  return remote;
}

MPI_Comm handle_of(const Communicator* comm) {
  return comm != nullptr ? comm->handle() : MPI_COMM_NULL;
}

void refuse_predefined(const Communicator& comm) {
  if (comm.constant != nullptr) {
    base::fail(MPI_ERR_COMM, "{} is predefined; it must not be freed", comm.name);
  }
}

} // namespace

// Requests alone do not tell: those that are inactive, or complete and not yet waited for, may stay
// for long. Collectives may wait for shared memory instead.
bool communicates(const engine::Engine& engine, const Communicator& comm, Owners owners) {
  bool found = false;
  const auto look = [&](const engine::Request& request, const Envelope& envelope) {
    found = found || (!request.complete && (owners == Owners::any || !request.detached) &&
                      comm.has_context(envelope.context));
  };
  engine.for_each_send([&](const auto& send) { look(send, send.envelope); });
  engine.matcher().for_each_posted([&](const auto& receive) { look(receive, receive.envelope); });
  engine.for_each_rendezvous_receive([&](const auto& receive) { look(receive, receive.envelope); });
  engine.partitioned().for_each_running([&](const engine::Partitioned& round, bool) {
    found = found || comm.has_context(round.envelope.context);
  });
  comm.sequence.for_each_running([&](const coll::Collective&, bool) { found = true; });
  return found;
}

std::vector<int> ranks_in(const Communicator& comm, const Group& group) {
  const engine::Places places(comm.local->ranks);
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(group.ranks.size()));
  for (int i = 0; i < group.ranks.size(); ++i) {
    const int rank = places(group.ranks[i]);
    if (rank < 0) {
      base::fail(MPI_ERR_GROUP,
                 "rank {} of the group (rank {} of MPI_COMM_WORLD) is not in the {}; give a "
                 "group of its members",
                 i, group.ranks[i], describe(comm));
    }
    ranks.push_back(rank);
  }
  return ranks;
}

void send_bytes(Process& self, Rank to, const Envelope& envelope, const void* data,
                std::size_t bytes) {
  const engine::Data what{const_cast<void*>(data), static_cast<MPI_Count>(bytes),
                          &self.types[MPI_BYTE]};
  auto* sent = self.instance->engine->send(self.instance->engine->peer(to), envelope, what,
                                           engine::SendMode::standard);
  if (sent == nullptr) return;
  self.instance->wait_until([&] { return sent->complete; });
  self.instance->engine->release(sent);
}

void receive_bytes(Process& self, Rank from, const Envelope& envelope, void* data,
                   std::size_t bytes) {
  const engine::Data what{data, static_cast<MPI_Count>(bytes), &self.types[MPI_BYTE]};
  auto* received =
      self.instance->engine->receive(&self.instance->engine->peer(from), envelope, what);
  self.instance->wait_until([&] { return received->complete; });
  const engine::Status status = received->status;
  self.instance->engine->release(received);
  if (status.error != MPI_SUCCESS || status.bytes != bytes) {
    base::fail(status.error != MPI_SUCCESS ? status.error : MPI_ERR_INTERN,
               "rank {} of the job sent {} bytes to agree on a communicator; {} were expected",
               from, status.bytes, bytes);
  }
}

void swap_bytes(Process& self, Rank other, const Envelope& envelope, std::int32_t other_source,
                const void* mine, std::size_t mine_bytes, void* theirs, std::size_t their_bytes) {
  const engine::Data out{const_cast<void*>(mine), static_cast<MPI_Count>(mine_bytes),
                         &self.types[MPI_BYTE]};
  engine::Engine& engine = *self.instance->engine;
  auto* sent = engine.send(engine.peer(other), envelope, out, engine::SendMode::standard);
  const std::optional<base::Error> failed = attempt([&] {
    receive_bytes(self, other, {envelope.context, other_source, envelope.tag}, theirs, their_bytes);
  });
  if (sent != nullptr) {
    if (failed) engine.cancel(*sent); // the other one may never receive it
    self.instance->wait_until([&] { return sent->complete; });
    engine.release(sent);
  }
  if (failed) throw *failed;
}

void swap_bytes(Process& self, Communicator& comm, SubContext sub_context, int peer, int tag,
                const void* mine, void* theirs, std::size_t bytes) {
  swap_bytes(self, (*comm.p2p.peers)[peer], {context_of(comm, sub_context), comm.rank(), tag}, peer,
             mine, bytes, theirs, bytes);
}

void swap_by_leaders(Process& self, Communicator& inter, const void* mine, void* theirs,
                     std::size_t bytes) {
  if (inter.rank() == 0)
    swap_bytes(self, inter, SubContext::create, 0, create_tag, mine, theirs, bytes);
  bcast_bytes(self, inter.inside, create_tag, theirs, bytes, 0);
}

Communicator* split(Process& self, Communicator& comm, std::int64_t color, int key) {
  const Choice mine{color, key,
                    color != MPI_UNDEFINED ? self.instance->new_context(is_joint(comm)) : 0};
  std::vector<Choice> local(static_cast<std::size_t>(comm.size()));
  if (comm.inter()) {
    compare_calls(self, comm);
    allgather_bytes(self, comm.inside, create_tag, &mine, sizeof mine, local.data());
  } else {
    allgather_bytes(self, comm, &mine, sizeof mine, local.data());
  }
  std::vector<Choice> remote;
  if (comm.inter()) remote = remote_choices(self, comm, local);
  if (color == MPI_UNDEFINED) return nullptr;

  Part part = part_of(local, comm.local->ranks, color);
  GroupRef others(nullptr, {&self});
  std::uint64_t context = part.context;
  if (comm.inter()) {
    Part far = part_of(remote, comm.remote->ranks, color);
    if (far.members.empty()) return nullptr; // nobody to talk to
    context = std::min(context, far.context);
    others.reset(&make_group(self, RankMap(std::move(far.members)), comm.local->session));
  }
  Group& group = make_group(self, RankMap(std::move(part.members)), comm.local->session);
  return &make_communicator(self, context, group, others.release(), *comm.errhandler);
}

Communicator& duplicate_ranks(Process& self, Communicator& comm) {
  CollectiveCall call;
  CommunicatorRef made = begin_duplicate(self, comm, call);
  run(self, comm, std::move(call));
  return *made.release();
}

// --- The MPI functions
// -----------------------------------------------------------------------------

void comm_dup(Process& self, Communicator& comm, MPI_Comm* newcomm) {
  duplicate(self, comm, newcomm, nullptr);
}

void comm_dup_with_info(Process& self, Communicator& comm, Info* info, MPI_Comm* newcomm) {
  duplicate(self, comm, newcomm, info);
}

void comm_idup(Process& self, Communicator& comm, MPI_Comm* newcomm, MPI_Request* request) {
  duplicate_later(self, comm, newcomm, nullptr, request);
}

void comm_idup_with_info(Process& self, Communicator& comm, Info* info, MPI_Comm* newcomm,
                         MPI_Request* request) {
  duplicate_later(self, comm, newcomm, info, request);
}

void comm_split(Process& self, Communicator& comm, int color, int key, MPI_Comm* newcomm) {
  if (color < 0 && color != MPI_UNDEFINED) {
    base::fail(MPI_ERR_ARG, "color is {}; it must not be negative (or be MPI_UNDEFINED)", color);
  }
  *newcomm = handle_of(split(self, comm, color, key));
}

namespace {

// One of so many that no two things of which ranks have one in common get the same.
std::int64_t color_of(const std::string& thing) {
  return static_cast<std::int64_t>(std::hash<std::string>()(thing) >> 1);
}

// The same for processes that share memory, and for no others: the machine, unless they use a
// network there too (MACADAM_NETWORK). Jobs number their machines each by itself.
std::int64_t color_of_shared_memory(Process& self, const Communicator& comm) {
  const boot::LaunchedJob& job = *self.job;
  const bool shares = self.instance->engine->networks().nearest().limits().maps;
  if (!shares) return color_of(fmt::format("{} {}", job.number(), job.rank()));
  return is_joint(comm) ? color_of(std::string(job.host())) : job.node(job.rank());
}

// For a member of a process set, which is one of its job alone.
std::int64_t color_of_set(Process& self, const std::string& name) {
  const std::optional<NamedSet> set = find_set(self, name);
  if (!set || set->ranks.find(static_cast<Rank>(self.job->rank())) < 0) return MPI_UNDEFINED;
  return color_of(fmt::format("{} {} {}", self.job->number(), set->ranks[0], set->name));
}

} // namespace

void comm_split_type(Process& self, Communicator& comm, int split_type, int key, Info* info,
                     MPI_Comm* newcomm) {
  const std::string* const resource = find(info, "mpi_hw_resource_type");
  const std::string* const set = find(info, "mpi_pset_name");
  std::int64_t color = MPI_UNDEFINED;
  switch (split_type) {
  case MPI_COMM_TYPE_SHARED:
    color = color_of_shared_memory(self, comm);
    break;
  case MPI_COMM_TYPE_HW_GUIDED:
  case MPI_COMM_TYPE_RESOURCE_GUIDED:
    // No other resource is known to be shared, and then there is no communicator.
    if (resource != nullptr && *resource == "mpi_shared_memory")
      color = color_of_shared_memory(self, comm);
    else if (split_type == MPI_COMM_TYPE_RESOURCE_GUIDED && set != nullptr)
      color = color_of_set(self, *set);
    break;
  case MPI_COMM_TYPE_HW_UNGUIDED: // nothing below the host is told apart
  case MPI_UNDEFINED:
    break;
  default:
    base::fail(MPI_ERR_ARG,
               "split_type is {}, which is none of MPI_COMM_TYPE_SHARED ({}), HW_UNGUIDED "
               "({}), HW_GUIDED ({}), RESOURCE_GUIDED ({}) or MPI_UNDEFINED",
               split_type, MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_HW_GUIDED,
               MPI_COMM_TYPE_RESOURCE_GUIDED);
  }
  CommunicatorRef made(split(self, comm, color, key), {&self});
  if (made != nullptr) comm_set_info(self, *made, info);
  *newcomm = handle_of(made.release());
}

void comm_create(Process& self, Communicator& comm, Group& group, MPI_Comm* newcomm) {
  const std::vector<int> ranks = ranks_in(comm, group);
  // Groups that different ranks pass are the same or disjoint: their first members tell them apart.
  // The parts of an intercommunicator's two groups belong together.
  const bool member = group.rank != MPI_UNDEFINED;
  const int color = !member ? MPI_UNDEFINED : comm.inter() ? 0 : ranks[0];
  *newcomm = handle_of(split(self, comm, color, member ? group.rank : 0));
}

void comm_create_group(Process& self, Communicator& comm, Group& group, int tag,
                       MPI_Comm* newcomm) {
  *newcomm = MPI_COMM_NULL;
  check_intra(comm, "comm");
  const std::vector<int> ranks = ranks_in(comm, group);
  const int me = group.rank, size = group.ranks.size();
  if (me == MPI_UNDEFINED) return;
  // Only the members take part: the leader's context goes down a binomial tree of messages, matched
  // by ranks of the old communicator, since there are none of the new one yet.
  std::uint64_t context = me == 0 ? self.instance->new_context(is_joint(comm)) : 0;
  const std::uint64_t sub_context = context_of(comm, SubContext::create);
  if (me != 0) {
    const int parent = me & (me - 1);
    receive_bytes(self, group.ranks[parent],
                  {sub_context, ranks[static_cast<std::size_t>(parent)], tag}, &context,
                  sizeof context);
  }
  const int below =
      me == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) : me & -me;
  for (int distance = below / 2; distance > 0; distance /= 2) {
    if (me + distance < size) {
      send_bytes(self, group.ranks[me + distance], {sub_context, comm.rank(), tag}, &context,
                 sizeof context);
    }
  }
  *newcomm = make_communicator(self, context, share(group), nullptr, *comm.errhandler).handle();
}

void comm_free(Process& self, MPI_Comm* comm) {
  auto& object = *self.find<Communicator>(*comm, base::ObjectKind::communicator);
  refuse_predefined(object);
  if (object.attributes) object.attributes->clear(object.handle());
  if (object.buffered) drain(*object.buffered);
  self.handles.forget(object.handle());
  if (self.world.parent == &object) self.world.parent = nullptr;
  object.kind = base::ObjectKind::freed; // operations in flight may keep the rest for a while
  release(self, object);
  *comm = MPI_COMM_NULL;
}

void comm_disconnect(Process& self, MPI_Comm* comm) {
  auto& object = *self.find<Communicator>(*comm, base::ObjectKind::communicator);
  refuse_predefined(object);
  const Owners owners =
      is_joint(object) ? Owners::waited_for : Owners::any; // part() sees to the rest
  self.instance->wait_until([&] { return !communicates(*self.instance->engine, object, owners); });
  std::vector<std::uint32_t> jobs; // that nothing is left of
  if (is_joint(object)) jobs = part(self, object);
  comm_free(self, comm);
  forget(self, jobs);
}

} // namespace macadam::mpi
