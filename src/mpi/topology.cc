// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/topology.h"

#include "base/error.h"
#include "mpi/calls.h"
#include "mpi/communicator.h"

#include <utility>

namespace macadam::mpi {

std::vector<int> Grid::coordinates(int rank) const {
  std::vector<int> result(dimensions.size());
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    result[i] = rank % dimensions[i].size;
    rank /= dimensions[i].size;
  }
  return result;
}

int Grid::rank_at(const std::vector<int>& coordinates) const {
  int rank = 0;
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    rank = rank * dimensions[i].size + coordinates[i];
  return rank;
}

int Grid::neighbor(std::size_t dimension, std::int64_t distance) const {
  const auto [size, periodic] = dimensions[dimension];
  std::int64_t at = position[dimension] + distance;
  if (at < 0 || at >= size) {
    if (!periodic) return MPI_PROC_NULL;
    at = (at % size + size) % size;
  }
  std::vector<int> there = position;
  there[dimension] = static_cast<int>(at);
  return rank_at(there);
}

std::vector<int> Graph::neighbors(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return {edges.begin() + (rank == 0 ? 0 : index[at - 1]), edges.begin() + index[at]};
}

Topology grid_topology(std::vector<Grid::Dimension> dimensions, int rank) {
  Grid grid{std::move(dimensions), {}};
  grid.position = grid.coordinates(rank);
  std::vector<int> neighbors;
  for (std::size_t i = 0; i < grid.dimensions.size(); ++i) {
    neighbors.push_back(grid.neighbor(i, -1));
    neighbors.push_back(grid.neighbor(i, +1));
  }
  return {std::move(grid), coll::Edges(neighbors, coll::Edges::Listed::in_opposite_pairs),
          coll::Edges(neighbors)};
}

Topology graph_topology(Graph graph, int rank) {
  const std::vector<int> neighbors = graph.neighbors(rank);
  return {std::move(graph), coll::Edges(neighbors), coll::Edges(neighbors)};
}

namespace {

template <class Shape>
const Shape& shape_of(const Communicator& comm, const char* needed, const char* constructors) {
  const Shape* shape = comm.topology ? std::get_if<Shape>(&comm.topology->shape) : nullptr;
  if (shape == nullptr) {
    base::fail(MPI_ERR_TOPOLOGY,
               "comm is {}, which has no {} topology; make a communicator with {} first",
               describe(comm), needed, constructors);
  }
  return *shape;
}

} // namespace

const Topology& topology(const Communicator& comm) {
  if (!comm.topology) {
    base::fail(MPI_ERR_TOPOLOGY,
               "comm is {}, which has no topology, so no rank has neighbours; make a communicator "
               "with MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create first",
               describe(comm));
  }
  return *comm.topology;
}

const Grid& grid(const Communicator& comm) {
  return shape_of<Grid>(comm, "Cartesian", "MPI_Cart_create");
}

const Graph& graph(const Communicator& comm) {
  return shape_of<Graph>(comm, "graph", "MPI_Graph_create");
}

const DistributedGraph& distributed_graph(const Communicator& comm) {
  return shape_of<DistributedGraph>(comm, "distributed graph",
                                    "MPI_Dist_graph_create or MPI_Dist_graph_create_adjacent");
}

void topo_test(Process&, Communicator& comm, int* status) {
  struct Kind {
    int operator()(const Grid&) const { return MPI_CART; }
    int operator()(const Graph&) const { return MPI_GRAPH; }
    int operator()(const DistributedGraph&) const { return MPI_DIST_GRAPH; }
  };
  *status = comm.topology ? std::visit(Kind{}, comm.topology->shape) : MPI_UNDEFINED;
}

} // namespace macadam::mpi
