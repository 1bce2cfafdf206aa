// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "rma/exposures.h"

#include <algorithm>
#include <bit>
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

// Where the list of attached memory of a dynamic window is (attach.cc). `version` grows with every
// change and is odd while one is made.
struct Attachments {
  std::uint64_t version = 0;
  std::uint64_t count = 0;
  BothKeys list;
};

// Where a rank stands that an access has been deferred for (deferred.cc). The word has a multiple
// of at_end_kinds besides: the fences it has been in, as one that is still in the fence before says
// nothing of this one.
enum class AtEnd : std::uint8_t {
  no,
  waits,  // for others, and serves their messages
  copies, // what it has deferred itself
};
constexpr std::uint8_t at_end_kinds = 4;

struct Control {
  alignas(64) TicketLock window;     // MPI_Win_lock
  alignas(64) TicketLock accumulate; // held while an origin reads, computes and writes
  std::uint64_t bar = 0;             // of the network's atomics: a Bar (network_atomics.cc)
  alignas(64) Attachments attachments;
  alignas(64) std::uint8_t at_end = 0; // an AtEnd: of its owner, at the end of an epoch
  // Behind it what Layout tells.
};

// What one rank writes for another to see: how often something has come to pass, modulo 256. It is
// compared with what is expected next, and never two ahead.
using Counter = std::uint8_t;

// The bit vectors of Jiang et al., section "Synchronization": what one rank tells another. They are
// counters here, since a bit would have to be written back before its next use, and RDMA writes no
// single bits. Each is written by one process only, so no atomics are needed.
struct NotificationCounters {
  Counter posted = 0;    // exposure epochs that it has opened to us
  Counter completed = 0; // access epochs of its own that it has ended towards us
};

// Fences that another rank, and those whom it speaks for, have come to; the odd ones and the even
// ones. Who comes to a fence knows that all have seen the one before the last, but not the last: so
// the two may land in any order.
struct FenceCounters {
  Counter come[2] = {};
};

// Whether a rank changes elements of this one by the processor's atomics now. Written at each such
// access, so it has a line of its own where there is room.
using AtAtomics = std::uint8_t;

// Where the window's atomics are the network's: what keeps elements that are changed by them apart
// from those that are changed in bulk (network_atomics.cc). Each is 0 or 1.
struct NetworkAtomics {
  std::uint8_t uses = 0;   // by that rank: it changes elements of ours by atomics, or has done
  std::uint8_t now = 0;    // by us: elements of that rank are being changed so
  std::uint8_t barred = 0; // by whoever is in bulk with that rank: they must not be any more
};

// Where things are in the control blocks of a window, as offsets: behind Control FenceCounters for
// each step of a fence; NotificationCounters for each rank; the exposures of the owner's row; for
// each rank AtAtomics if all share memory, else NetworkAtomics. What is there for each rank is a
// few bytes. Those that others write by the processor lie in lines of their own as long as all fit
// a small room, and ever closer the more ranks there are.
class Layout {
 public:
  explicit Layout(int ranks)
      : ranks_(static_cast<std::size_t>(ranks)),
        counters_step_(step(room_of_counters, sizeof(NotificationCounters), most_counters_step)),
        atomics_step_(step(room_of_atomics, least_atomics_step, line)),
        counters_(sizeof(Control) + fence_steps * sizeof(FenceCounters)),
        exposures_(aligned(counters_ + ranks_ * counters_step_)),
        atomics_(aligned(exposures_ + Exposures::row_bytes(ranks))) {}

  // In step `k` of a fence a rank hears of the one 2^k before it.
  [[nodiscard]] static std::size_t fence(int k, std::uint32_t number) {
    return sizeof(Control) + static_cast<std::size_t>(k) * sizeof(FenceCounters) + number % 2;
  }
  [[nodiscard]] std::size_t posted(int rank) const {
    return counters(rank) + offsetof(NotificationCounters, posted);
  }
  [[nodiscard]] std::size_t completed(int rank) const {
    return counters(rank) + offsetof(NotificationCounters, completed);
  }
  [[nodiscard]] std::size_t exposures() const { return exposures_; }
  [[nodiscard]] std::size_t at_atomics(int rank) const {
    return atomics_ + static_cast<std::size_t>(rank) * atomics_step_;
  }
  [[nodiscard]] std::size_t network_atomics(int rank) const {
    return atomics_ + static_cast<std::size_t>(rank) * sizeof(NetworkAtomics);
  }
  [[nodiscard]] std::size_t bytes(bool share_memory) const {
    return atomics_ + ranks_ * (share_memory ? atomics_step_ : sizeof(NetworkAtomics));
  }

 private:
  static constexpr std::size_t line = 64;
  static constexpr std::size_t fence_steps = 32;
  static constexpr std::size_t room_of_counters = 4096;
  static constexpr std::size_t most_counters_step = 16;
  static constexpr std::size_t room_of_atomics = 16384;
  static constexpr std::size_t least_atomics_step = 4;

  static constexpr std::size_t aligned(std::size_t offset) {
    return (offset + line - 1) / line * line;
  }
  [[nodiscard]] std::size_t step(std::size_t room, std::size_t least, std::size_t most) const {
    return std::clamp(std::bit_floor(room / ranks_), least, most);
  }
  [[nodiscard]] std::size_t counters(int rank) const {
    return counters_ + static_cast<std::size_t>(rank) * counters_step_;
  }

  std::size_t ranks_;
  std::size_t counters_step_; // from one rank to the next
  std::size_t atomics_step_;
  std::size_t counters_;
  std::size_t exposures_;
  std::size_t atomics_;
};

} // namespace macadam::rma
