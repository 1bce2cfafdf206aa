// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/communicator.h"

#include <cstddef>

namespace macadam::mpi {

// What the calls that make communicators agree by, beside collectives.h. Blocking.

// Tag of these messages, beyond those that collectives use.
inline constexpr int create_tag = 0x7fffffff;

// Two ranks swap `bytes` bytes. `lane` is one of the communicator that both are in.
void swap_bytes(Process& self, Communicator& comm, Lane lane, int peer, int tag, const void* mine,
                void* theirs, std::size_t bytes);

// All ranks of an intercommunicator learn what the leaders (ranks 0) of both groups say.
void swap_by_leaders(Process& self, Communicator& inter, const void* mine, void* theirs,
                     std::size_t bytes);

// A communicator of the same ranks for the library's own use: with nothing of the user's.
Communicator& duplicate_for_library(Process& self, Communicator& comm, const char* name);

} // namespace macadam::mpi
