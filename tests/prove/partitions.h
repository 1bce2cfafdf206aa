// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/partitioned.h"
#include "prove/program.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace macadam::prove {

class Job;

// A partitioned send or receive of a program, with what MPI promises of it: the k-th send and the
// k-th receive that two processes make with one tag are for each other; a round brings what the
// sender had in a partition when it marked it; a partition of the receiver is there when all that
// belongs to it is; outside of a round nothing is written.
struct PartitionedOperation {
  Job* job = nullptr;
  Step step;
  int rank = 0;
  int order = 0; // among those of the same kind, peer and tag
  engine::PartitionedSend* send = nullptr;
  engine::PartitionedReceive* receive = nullptr;
  std::vector<unsigned char> memory; // the user's
  int started = 0, ended = 0;        // rounds
  int filled = 0;                    // ... of which all partitions were marked
  bool failed = false;               // the last round has, for want of a peer or of memory
  bool harmed = false;               // some round has
  unsigned marked = 0;               // a bit for each partition of this round

  [[nodiscard]] bool running() const { return started != ended; }
  [[nodiscard]] bool made() const { return send != nullptr || receive != nullptr; }
  [[nodiscard]] bool sends() const { return step.what == Step::What::partitioned_send; }
  [[nodiscard]] std::size_t bytes() const { return step.bytes * step.partitions; }
};

} // namespace macadam::prove
