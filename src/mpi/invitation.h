// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/team.h"
#include "engine/transport.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace macadam::mpi {

class Process;

// How processes that share no communicator yet agree on one (MPI_Comm_create_from_group): by
// messages under a context that no communicator has. A message holds all that tells one call from
// another, the whole string tag and a sum of the group, since several threads may make
// communicators at once; and a thread that finds another's message keeps it for that.
struct Invitation {
  enum class From : std::uint32_t { below, above, other_leader }; // in a tree of the group

  engine::Rank sender = 0; // rank in the job
  From from = From::below;
  std::uint64_t group = 0;   // sum of its ranks, in order
  std::uint64_t context = 0; // above: of the new communicator; other_leader: offered, to talk under
  std::string tag;

  [[nodiscard]] bool answers(const Invitation& wanted) const {
    return sender == wanted.sender && from == wanted.from && group == wanted.group &&
           tag == wanted.tag;
  }
};

// Those that have come for another thread's call.
using Invitations = std::list<Invitation>;

// A call that waits for other processes so; for pages about jobs that hang.
struct Gathering {
  std::uint64_t id; // the same on all of them
  const engine::RankMap& group;
};

// Both block. invite() sends `invitation`, of which `sender` is filled in; await_invitation() fills
// in what is missing in `wanted`.
void invite(Process& self, engine::Rank to, const Invitation& invitation);
void await_invitation(Process& self, Invitation& wanted);

} // namespace macadam::mpi
