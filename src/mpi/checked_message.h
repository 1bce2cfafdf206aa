// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"
#include "mpi/p2p.h"
#include "mpi/request.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

// Messages with MACADAM_CHECK: in front of its data each carries a note of what its sender sends,
// and its receiver compares. To the engine the two are one message of a structure, so all protocols
// carry them, and a job that does not check has nothing of this on any path.
namespace macadam::mpi {

// The signature of a message's data and the call that sends it.
struct Note {
  std::int64_t elements = 0; // basic ones
  std::uint64_t hash = 0;    // see datatype::Signature
  bool untyped = false;      // of MPI_BYTE or MPI_PACKED alone, which go with any type
  std::array<char, 103> call = {};
};
static_assert(sizeof(Note) == 120);

// Of `data`, which the call under way describes.
[[nodiscard]] Note note_of(const Process& self, const engine::Data& data);
// What a probe says of a message is without it.
[[nodiscard]] std::uint64_t note_bytes(const Process& self);

// What the sender's note says against the receiver's own: empty if they match. A message may be
// shorter than its receive; then it is compared with as much of that. Of one that is `cut`, as it
// has more bytes, nothing more is said if it has more elements too.
[[nodiscard]] std::string difference(const Note& sent, const engine::Data& received, bool cut);
// The same of an access to a window, whose caller describes both sides. Throws MPI_ERR_TYPE.
void check_access(MPI_Count origin_count, const datatype::Type& origin, MPI_Count count,
                  const datatype::Type& type);

// A send or receive that carries a note.
struct CheckedMessage : LayerRequest {
  CheckedMessage(const RequestClass& how, Process& process_of, const engine::Data& user);

  Process& process;
  engine::Data data;      // of a receive, the user's
  datatype::TypeRef type; // keeps data.type
  Note note;              // of the sender
  std::string call;       // of a receive
  engine::Request* running = nullptr;
};

// As start_send() and start_receive() of p2p.h.
engine::Request* start_checked_send(Process& self, const Transfer& transfer, engine::SendMode mode);
engine::Request* start_checked_receive(Process& self, const Transfer& transfer);
// As Engine::receive_matched().
engine::Request& receive_checked(Process& self, engine::Message& message, const engine::Data& data);

} // namespace macadam::mpi
