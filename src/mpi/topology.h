// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/neighbors.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace macadam::mpi {

struct Communicator;

// What MPI_Cart_create, MPI_Graph_create and MPI_Dist_graph_create lay over a communicator's ranks.
// Immutable; duplicates of the communicator share it.

// Ranks in row-major order: the last coordinate runs fastest.
struct Grid {
  struct Dimension {
    int size = 1;
    bool periodic = false;
  };
  std::vector<Dimension> dimensions;
  std::vector<int> position; // of this rank: one coordinate a dimension

  [[nodiscard]] std::vector<int> coordinates(int rank) const;
  // Every coordinate lies inside its dimension.
  [[nodiscard]] int rank_at(const std::vector<int>& coordinates) const;
  // The rank `distance` away from this one, or MPI_PROC_NULL beyond an edge.
  [[nodiscard]] int neighbor(std::size_t dimension, std::int64_t distance) const;
};

// All edges of all ranks, as the user gave them: those of rank r are edges[index[r-1]] (0 for r =
// 0) to edges[index[r] - 1].
struct Graph {
  std::vector<int> index;
  std::vector<int> edges;

  [[nodiscard]] std::vector<int> neighbors(int rank) const;
};

// The edges of this rank only. Weights are empty if the graph has none.
struct DistributedGraph {
  std::vector<int> source_weights;
  std::vector<int> destination_weights;
  bool weighted = false;
};

struct Topology {
  std::variant<Grid, Graph, DistributedGraph> shape;
  // Whom neighbourhood collectives receive from and send to, in MPI's order.
  coll::Edges sources;
  coll::Edges destinations;
};

// A rank's topology, with its neighbours filled in.
Topology grid_topology(std::vector<Grid::Dimension> dimensions, int rank);
Topology graph_topology(Graph graph, int rank);

// The topology of a communicator, or that of one kind. Throws MPI_ERR_TOPOLOGY if it has no such.
const Topology& topology(const Communicator& comm);
const Grid& grid(const Communicator& comm);
const Graph& graph(const Communicator& comm);
const DistributedGraph& distributed_graph(const Communicator& comm);

// Lengths of arrays that describe neighbours or dimensions, for the checks of arguments.
inline int in_neighbors(const Communicator& comm) {
  return static_cast<int>(topology(comm).sources.ranks().size());
}
inline int out_neighbors(const Communicator& comm) {
  return static_cast<int>(topology(comm).destinations.ranks().size());
}
inline int dimensions(const Communicator& comm) {
  return static_cast<int>(grid(comm).dimensions.size());
}

} // namespace macadam::mpi
