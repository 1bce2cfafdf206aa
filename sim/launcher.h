// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/wire.h"
#include "sim/scheduler.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace macadam::sim {

class Rank;

// What the ranks of a simulated job share: the part of mpiexec. Nothing here is for messages.
struct Launcher {
  explicit Launcher(int ranks)
      : endpoints(static_cast<std::size_t>(ranks)), waiting_for(endpoints.size()) {}

  struct Abort {
    int rank;
    int code;
    std::string text;
  };

  std::array<std::uint8_t, 16> secret = {};
  std::vector<std::optional<net::rdma::wire::Endpoint>> endpoints; // by rank, once published
  std::vector<std::vector<Rank*>> waiting_for; // ... who wants to know it, until then
  std::uint32_t generation = 0;                // see boot::Job
  int in_mpi = 0;                              // ranks that have entered it and not left
  std::vector<Rank*> in_barrier;
  std::vector<Rank*> ended; // not destroyed yet
  int computing = 0;        // ranks
  std::uint32_t barrier_round = 0;
  std::optional<Abort> abort;
  std::vector<std::string> final_reports;
};

} // namespace macadam::sim
