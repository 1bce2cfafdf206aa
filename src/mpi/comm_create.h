// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/communicator.h"

#include <cstddef>
#include <vector>

namespace macadam::mpi {

// What the calls that make communicators agree by, beside collectives.h. Blocking.

// Tag of these messages, beyond those that collectives use.
inline constexpr int create_tag = 0x7fffffff;

// A blocking message of bytes to or from a rank of the job. `envelope.source` is the sender.
void send_bytes(Process& self, engine::Rank to, const engine::Envelope& envelope, const void* data,
                std::size_t bytes);
void receive_bytes(Process& self, engine::Rank from, const engine::Envelope& envelope, void* data,
                   std::size_t bytes);
// Both at once with one other. `other_source`: what its envelope says.
void swap_bytes(Process& self, engine::Rank other, const engine::Envelope& envelope,
                std::int32_t other_source, const void* mine, std::size_t mine_bytes, void* theirs,
                std::size_t their_bytes);

// Two ranks swap `bytes` bytes. `sub_context` is one of the communicator that both are in.
void swap_bytes(Process& self, Communicator& comm, SubContext sub_context, int peer, int tag,
                const void* mine, void* theirs, std::size_t bytes);

// All ranks of an intercommunicator learn what the leaders (ranks 0) of both groups say.
void swap_by_leaders(Process& self, Communicator& inter, const void* mine, void* theirs,
                     std::size_t bytes);

// Whether a message of the communicator is under way, or a receive waits for one. `waited_for`:
// only operations that somebody waits for.
enum class Owners { any, waited_for };
bool communicates(const engine::Engine& engine, const Communicator& comm, Owners owners);

// The members of `group` as ranks of the communicator. Throws MPI_ERR_GROUP if one is not in it.
std::vector<int> ranks_in(const Communicator& comm, const Group& group);

// The part of the ranks that pass the same color, ordered by key and then by old rank. Null if
// color is MPI_UNDEFINED, or if an intercommunicator's other group has no rank of that color.
Communicator* split(Process& self, Communicator& comm, std::int64_t color, int key);

// A communicator of the same ranks, with nothing else of the old one but its error handler.
Communicator& duplicate_ranks(Process& self, Communicator& comm);

} // namespace macadam::mpi
