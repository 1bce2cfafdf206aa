// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "coll/collective.h"
#include "io/access.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::io {

// How the ranks of a communicator help each other; the same on all of them.
struct Buffering {
  static constexpr MPI_Count least_window = 64 << 10;
  static constexpr MPI_Count most_window = 1 << 30; // offsets in it fit 32 bits
  enum class When : std::uint8_t { interleaved, always, never };
  When when = When::interleaved;   // what the ranks move lies between what others do
  MPI_Count window = 4 << 20;      // bytes of the file that an aggregator deals with at a time
  std::vector<int> aggregators{0}; // ranks that read and write for all
};

struct Counters {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t together = 0; // collective accesses by aggregators
  std::uint64_t alone = 0;    // ... by each rank for itself
  std::uint64_t windows = 0;  // that this process has read or written for all

  void list(base::CounterList& list) const;
};

// A collective access, Arguments::extra of the collective.
struct CollectiveAccess {
  Access access;
  std::shared_ptr<const Buffering> buffering;
  Counters* counters;
  std::size_t moved = 0; // bytes, once it is complete
};

// Reads or writes, on all ranks together (two-phase: del Rosario, Bordawekar and Choudhary 1993;
// Thakur and Choudhary 1996): what the ranks move is divided by place in the file among
// aggregators, which read and write long blocks and exchange the pieces with the ranks whose they
// are. What does not interleave each rank moves for itself.
coll::Task access_together(coll::Collective& self);

} // namespace macadam::io
