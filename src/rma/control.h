// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "rma/exposures.h"

#include <cstddef>
#include <cstdint>

// What a rank's peers read and write of it to synchronise: its control block, in memory of the
// library that is exposed for as long as the window lives. Peers write it by themselves; the owner
// only looks, when its program calls.
namespace macadam::rma {

// A fair lock of readers and writers: tickets, served in order. `next` and `writers` are counted
// with atomics; `readers` is written by the one whose turn it is.
//   reader: waits until `readers` is its ticket, and lets the next in at once (readers = ticket +
//           1); at its end adds 1 to `writers`.
//   writer: waits until `writers` is its ticket, so until all before it have ended; at its end lets
//           readers in (readers = ticket + 1), then adds 1 to `writers`.
// A reader that comes in between the last two may end before the second, so that one must add too.
// Nobody is overtaken, so nobody starves.
struct TicketLock {
  std::uint64_t next = 0;
  std::uint64_t readers = 0;
  std::uint64_t writers = 0;
};

// Where the list of attached memory of a dynamic window is (attach.h). `version` grows with every
// change and is odd while one is made.
struct Attachments {
  std::uint64_t version = 0;
  std::uint64_t count = 0;
  engine::RemoteMemory near_list;
  engine::RemoteMemory far_list;
};

struct Control {
  alignas(64) TicketLock window;     // MPI_Win_lock
  alignas(64) TicketLock accumulate; // held while an origin reads, computes and writes
  std::uint32_t in_bulk = 0;         // by its holder, without atomics (remote_atomics.h)
  std::uint64_t bar = 0;             // of the network's atomics: a Bar (network_atomics.cc)
  alignas(64) Attachments attachments;
  // Behind it, for each rank of the window: NotificationCounters; and AtAtomics, if all share
  // memory, else NetworkAtomics. At the end the exposures of the owner's row (Exposures).
};

// The bit vectors of Jiang et al., section "Synchronization": what one rank tells another. They are
// counters here, since a bit would have to be written back before its next use, and RDMA writes no
// single bits. Each is written by one process only, so no atomics are needed.
struct NotificationCounters {
  std::uint32_t posted = 0;    // exposure epochs that it has opened to us
  std::uint32_t completed = 0; // access epochs of its own that it has ended towards us
  // Fences that it, and those whom it speaks for, have come to; the odd ones and the even ones. Who
  // comes to a fence knows that all have seen the one before the last, but not the last: so the two
  // may land in any order.
  std::uint32_t fenced[2] = {};
};

// Whether a rank changes elements of this one by the processor's atomics now. Written at each such
// access, so it has a line of its own.
struct alignas(64) AtAtomics {
  std::uint32_t now = 0;
};

// Where the window's atomics are the network's: what keeps elements that are changed by them apart
// from those that are changed in bulk (network_atomics.cc).
struct NetworkAtomics {
  std::uint64_t uses = 0;   // by that rank: it changes elements of ours by atomics, or has done
  std::uint64_t now = 0;    // by us: elements of that rank are being changed so
  std::uint64_t barred = 0; // by whoever is in bulk with that rank: they must not be any more
};

constexpr std::size_t counters_offset(int rank) {
  return sizeof(Control) + static_cast<std::size_t>(rank) * sizeof(NotificationCounters);
}
constexpr std::size_t atomics_offset(int ranks, int rank) {
  constexpr std::size_t line = sizeof(AtAtomics);
  return (counters_offset(ranks) + line - 1) / line * line + static_cast<std::size_t>(rank) * line;
}
constexpr std::size_t network_atomics_offset(int ranks, int rank) {
  return counters_offset(ranks) + static_cast<std::size_t>(rank) * sizeof(NetworkAtomics);
}
constexpr std::size_t exposures_offset(int ranks, bool share_memory) {
  return share_memory ? atomics_offset(ranks, ranks) : network_atomics_offset(ranks, ranks);
}
constexpr std::size_t control_bytes(int ranks, bool share_memory) {
  return exposures_offset(ranks, share_memory) + Exposures::row_bytes(ranks);
}

} // namespace macadam::rma
