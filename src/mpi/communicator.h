// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/object.h"
#include "coll/board.h"
#include "coll/machines.h"
#include "coll/sequence.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "mpi/context.h"
#include "mpi/hints.h"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace macadam::mpi {

class Attributes;
class BufferedSends;
class Library;
class Process;
struct Errhandler;
struct Info;
struct Session;
struct Topology;

// Whose ranks, in order. Immutable; communicators and MPI_Group handles share it by counting.
struct Group : base::Object {
  Group() : base::Object(base::ObjectKind::group) {}
  engine::RankMap ranks;
  int rank = MPI_UNDEFINED;     // of this process
  Session* session = nullptr;   // that it comes from; null: none
  MPI_Group constant = nullptr; // MPI_GROUP_EMPTY

  [[nodiscard]] MPI_Group handle() const {
    return constant != nullptr ? constant : reinterpret_cast<MPI_Group>(const_cast<Group*>(this));
  }
};

// A group of these ranks of the job, owned by the caller; `session` as that of the group they are
// taken from.
Group& make_group(Library& self, engine::RankMap ranks, Session* session);
Group& share(Group& group);
void drop(Library& self, Group* group);
// A reference that is dropped unless somebody takes it over.
struct DropGroup {
  Library* self;
  void operator()(Group* group) const { drop(*self, group); }
};
using GroupRef = std::unique_ptr<Group, DropGroup>;

// What travels under a communicator's context, each kind apart from the others.
enum class SubContext : std::uint64_t {
  p2p,        // the user's messages
  collective, // collectives
  create,     // agreement on a new communicator among some of the ranks (MPI_Comm_create_group)
  local,      // an intercommunicator's local group among itself; else the teams of coll::Machines
};
inline constexpr std::uint64_t sub_contexts =
    1 << sub_context_bits; // contexts of a communicator, in a row

// A communicator. Operations in flight may hold a reference; MPI_Comm_free gives up the user's.
struct Communicator : base::Object, base::ListNode<> {
  [[nodiscard]] int rank() const { return p2p.rank; }
  [[nodiscard]] int size() const { return p2p.local->size(); }
  // Ranks that a message can be sent to: the remote group of an intercommunicator.
  [[nodiscard]] int peers() const { return p2p.peers->size(); }
  [[nodiscard]] bool inter() const { return remote != nullptr; }
  // Whether messages with this context are its own.
  [[nodiscard]] bool has_context(std::uint64_t context) const {
    return context - p2p.context < sub_contexts;
  }
  [[nodiscard]] engine::Peer& peer(engine::Engine& engine, int to) const {
    return engine.peer((*p2p.peers)[to]);
  }
  // The constant of a predefined communicator, the address of another.
  [[nodiscard]] MPI_Comm handle() const {
    return constant != nullptr ? constant
                               : reinterpret_cast<MPI_Comm>(const_cast<Communicator*>(this));
  }

  engine::Team p2p;
  engine::Team collective;
  engine::Team inside; // of the local group; differs from `collective` if inter()
  Group* local = nullptr;
  Group* remote = nullptr;     // intercommunicators
  coll::Sequence sequence;     // of collectives: gives each its tag
  coll::Boards boards;         // ... and its shared memory
  coll::Machines machines;     // ... or its two levels
  MPI_Comm constant = nullptr; // MPI_COMM_WORLD, MPI_COMM_SELF
  Errhandler* errhandler = nullptr;
  std::unique_ptr<Attributes> attributes;
  Hints hints;
  std::unique_ptr<BufferedSends> buffered;  // of MPI_Comm_attach_buffer
  std::shared_ptr<const Topology> topology; // null if none; shared with duplicates
  std::string name;
  bool of_library = false; // a window's or a file's, which is all of its name

  Communicator();
  ~Communicator();
};

// A communicator of these groups, whose references it takes over, also if it throws; `remote` is
// null for an intracommunicator. Inherits nothing but the error handler.
Communicator& make_communicator(Process& self, std::uint64_t context, Group& local, Group* remote,
                                Errhandler& errhandler);
// Settles the context of a communicator that was made before it was known.
void set_context(Communicator& comm, std::uint64_t context);
// For what outlives a call on the communicator, such as a nonblocking collective; belongs_to()
// makes it a request's communicator, which keeps it alive for as long as the request lives.
inline void retain(Communicator& comm) {
  ++comm.references;
}
void destroy(Process& self, Communicator& comm);
inline void release(Process& self, Communicator& comm) {
  if (--comm.references == 0) [[unlikely]]
    destroy(self, comm);
}
// A reference that is released unless somebody takes it over.
struct ReleaseCommunicator {
  Process* self;
  void operator()(Communicator* comm) const { release(*self, *comm); }
};
using CommunicatorRef = std::unique_ptr<Communicator, ReleaseCommunicator>;
inline void belongs_to(engine::Request& request, Communicator& comm) {
  retain(comm);
  request.owner = &comm;
}

// "2 of rank 0": the place of a context in the order in which its leader made them, the same on all
// ranks.
std::string number_of(std::uint64_t context);
// For messages: "communicator MPI_COMM_WORLD", or by the name that the user gave, or by the number.
std::string describe(const Communicator& comm);

// Throws MPI_ERR_COMM for an intercommunicator. `name` is the parameter's.
void check_intra(const Communicator& comm, const char* name);

} // namespace macadam::mpi
