// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "sim/neighbors.h"
#include "sim/scheduler.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace macadam::sim {

class Rank;

// What the ranks of a simulated job share: the part of mpiexec. Nothing here is for messages.
struct Launcher {
  // Its nodes are numbered from `its_first_node` on.
  Launcher(int ranks, int ranks_per_node, int its_first_node)
      : addresses(static_cast<std::size_t>(ranks)), first_node(its_first_node) {
    for (int first = 0; first < ranks; first += ranks_per_node)
      nodes.push_back(std::make_shared<Node>(ranks_per_node));
  }
  // On one node, with other jobs.
  Launcher(int ranks, std::shared_ptr<Node> node)
      : addresses(static_cast<std::size_t>(ranks)), nodes{node}, first_node(0),
        first_place(node->add(ranks)) {}

  boot::Secret secret = {};
  struct Address {
    std::vector<std::byte> bytes;
    boot::Agreement agreement;
    bool published = false;
    std::vector<Rank*> waiting; // looked for it before
  };
  std::vector<Address> addresses; // by rank
  [[nodiscard]] std::optional<boot::Agreement> agreement_of(int rank) const {
    const Address& its = addresses[static_cast<std::size_t>(rank)];
    return its.published ? std::optional(its.agreement) : std::nullopt;
  }
  std::vector<std::shared_ptr<Node>> nodes;
  const int first_node;
  const int first_place = 0;     // of its ranks on each node
  std::uint32_t generation = 0;  // see boot::LaunchedJob
  int in_mpi = 0;                // ranks that have entered it and not left
  int running = 0;               // ranks that have not ended
  std::vector<boot::Life> lives; // of ranks; empty: all run
  std::vector<Rank*> in_barrier;
  std::uint32_t barrier_round = 0;
  std::vector<std::string> final_reports;
};

// How the ranks of all jobs of a world stand.
struct Standing {
  struct Abort {
    std::string who;
    int code;
    std::string text;
  };

  std::vector<Rank*> ended; // not destroyed yet
  int computing = 0;        // ranks
  std::optional<Abort> abort;
};

} // namespace macadam::sim
