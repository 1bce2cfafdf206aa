// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/ofi/choice.h"

#include <string>

namespace macadam::net::ofi {

// Bytes that a provider of libfabric holds in a process, as the kernel counts them.
struct PeerMemory {
  std::string provider; // "net on lo 127.0.0.1"
  double endpoint = 0;  // of the endpoint, all that was loaded for it, and the first address
  double known = 0;     // ... more for each other peer whose address it has
  double talked = 0;    // ... more for each with which it has exchanged messages, the median
  double pools = 0;     // ... more for all together: what grows in long steps
  double files = 0;     // open ones for such a peer
};

// Measures them between this process and `peers` more, two at least, that it starts on this machine
// for a moment, at the best endpoint for this wish. For a process of one thread that has not used
// libfabric before. What is shared between processes, or the kernel's, is not counted. Throws
// base::Error (MPI_ERR_OTHER) if there is none, or if two of them do not talk within 30 s.
PeerMemory measure_peer_memory(const Wish& wish, int peers);

// The rest of what a transport holds for a peer.
std::size_t route_bytes();

} // namespace macadam::net::ofi
