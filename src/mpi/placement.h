// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/topology.h"

#include <cstdint>
#include <vector>

namespace macadam::mpi {

// Which vertices of a topology talk to each other, and how much. Undirected: add() enters an edge
// on both sides.
class Traffic {
 public:
  struct Edge {
    int to;
    std::int64_t weight;
  };

  explicit Traffic(int vertices) : edges_(static_cast<std::size_t>(vertices)) {}
  void add(int one, int other, std::int64_t weight);

  [[nodiscard]] int vertices() const { return static_cast<int>(edges_.size()); }
  [[nodiscard]] const std::vector<Edge>& of(int vertex) const {
    return edges_[static_cast<std::size_t>(vertex)];
  }

 private:
  std::vector<std::vector<Edge>> edges_;
};

// The traffic of a grid: one unit between neighbours.
Traffic grid_traffic(const std::vector<Grid::Dimension>& grid);

// Which rank takes which vertex, so that those with much traffic come onto one machine:
// `machines[r]` is the machine of rank r, and the result the rank of each vertex. Never more
// traffic between machines than with vertex v on rank v, which is the result where nothing better
// is found. `grid`, if the vertices are one: blocks of it are tried as well. All ranks find the
// same.
std::vector<int> place(const Traffic& traffic, const std::vector<int>& machines,
                       const std::vector<Grid::Dimension>& grid = {});

// Traffic between machines, each edge once.
std::int64_t traffic_between(const Traffic& traffic, const std::vector<int>& machines,
                             const std::vector<int>& rank_of);

} // namespace macadam::mpi
