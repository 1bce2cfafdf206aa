// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/invitation.h"

#include "mpi/comm_create.h"
#include "mpi/context.h"
#include "mpi/process.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace macadam::mpi {
namespace {

using engine::Rank;

// No rank leads communicators under it.
constexpr std::uint64_t invitation_context = context_of(no_leader, 0);

// On the wire; the string tag follows.
struct Header {
  std::uint64_t group;
  std::uint64_t context;
  Invitation::From from;
  std::uint32_t pad;
};
static_assert(sizeof(Header) == 24);

Invitation receive(Process& self, engine::Message& message) {
  const std::size_t bytes = message.bytes;
  Invitation came;
  came.sender = static_cast<Rank>(message.envelope.source);
  std::vector<char> data(bytes);
  engine::Engine& engine = *self.instance->engine;
  auto* const received = engine.receive_matched(
      message, {data.data(), static_cast<MPI_Count>(bytes), &self.types[MPI_BYTE]});
  self.instance->wait_until([&] { return received->complete; });
  const std::int32_t error = received->status.error;
  engine.release(received);
  if (error != MPI_SUCCESS || bytes < sizeof(Header)) {
    base::fail(error != MPI_SUCCESS ? error : MPI_ERR_INTERN,
               "rank {} of the job sent {} bytes to agree on a communicator", came.sender, bytes);
  }
  Header header{};
  std::memcpy(&header, data.data(), sizeof header);
  came.from = header.from;
  came.group = header.group;
  came.context = header.context;
  came.tag.assign(data.begin() + sizeof header, data.end());
  return came;
}

} // namespace

void invite(Process& self, Rank to, const Invitation& invitation) {
  const Header header{invitation.group, invitation.context, invitation.from, 0};
  std::vector<char> data(sizeof header + invitation.tag.size());
  std::memcpy(data.data(), &header, sizeof header);
  std::ranges::copy(invitation.tag, data.begin() + sizeof header);
  const auto own = static_cast<std::int32_t>(self.job->rank());
  send_bytes(self, to, {invitation_context, own, 0}, data.data(), data.size());
}

void await_invitation(Process& self, Invitation& wanted) {
  Invitations& kept = self.instance->invitations;
  for (;;) {
    engine::Message* message = nullptr;
    Invitations::iterator found;
    self.instance->wait_until([&] {
      found =
          std::ranges::find_if(kept, [&](const Invitation& each) { return each.answers(wanted); });
      if (found != kept.end()) return true;
      message = self.instance->engine->match_probe({invitation_context, MPI_ANY_SOURCE, 0});
      return message != nullptr;
    });
    if (found != kept.end()) {
      wanted = std::move(*found);
      kept.erase(found);
      return;
    }
    kept.push_back(receive(self, *message));
  }
}

} // namespace macadam::mpi
