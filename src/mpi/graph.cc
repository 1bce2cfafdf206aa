// SPDX-License-Identifier: BSD-3-Clause
// Graph topologies: every rank knows the whole graph.
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/topology.h"
#include "mpi/topology_create.h"

#include <algorithm>

namespace macadam::mpi {
namespace {

Graph checked(const Communicator& comm, int nnodes, const int index[], const int edges[]) {
  if (nnodes > comm.size()) {
    base::fail(MPI_ERR_ARG,
               "nnodes is {}, but {} has {} ranks; a graph needs a rank for every node: give "
               "fewer, or start more ranks",
               nnodes, describe(comm), comm.size());
  }
  int before = 0;
  for (int i = 0; i < nnodes; ++i) {
    if (index[i] < before) {
      base::fail(MPI_ERR_ARG,
                 "index[{}] is {}, less than {} before it; index counts the edges of this and all "
                 "earlier nodes: give numbers that do not fall",
                 i, index[i], before);
    }
    before = index[i];
  }
  if (before > 0 && edges == nullptr) {
    base::fail(MPI_ERR_ARG,
               "edges is a null pointer, but index counts {} edges; give a node for each", before);
  }
  for (int i = 0; i < before; ++i) {
    if (edges[i] < 0 || edges[i] >= nnodes) {
      base::fail(MPI_ERR_ARG, "edges[{}] is {}; give a node of the graph, 0 to {}", i, edges[i],
                 nnodes - 1);
    }
  }
  return {{index, index + nnodes}, {edges, edges + before}};
}

std::vector<int> ranks_of_nodes(Process& self, const Communicator& comm, bool reorder,
                                const Graph& graph) {
  const auto nodes = static_cast<int>(graph.index.size());
  return ranks_of_vertices(self, comm, nodes, reorder, [&] {
    Traffic traffic(nodes);
    for (int node = 0; node < nodes; ++node) {
      for (const int neighbor : graph.neighbors(node))
        traffic.add(node, neighbor, 1);
    }
    return traffic;
  });
}

void check_room(int room, std::size_t needed, const char* name, const char* what) {
  if (room < static_cast<int>(needed))
    base::fail(MPI_ERR_ARG, "{} is {}, but there are {} {}; make room for all", name, room, needed,
               what);
}

} // namespace

void graph_create(Process& self, Communicator& comm_old, int nnodes, const int index[],
                  const int edges[], int reorder, MPI_Comm* comm_graph) {
  check_intra(comm_old, "comm_old");
  Graph graph = checked(comm_old, nnodes, index, edges);
  const std::vector<int> ranks = ranks_of_nodes(self, comm_old, reorder != 0, graph);
  *comm_graph = with_topology(take_vertices(self, comm_old, ranks),
                              [&](int rank) { return graph_topology(std::move(graph), rank); });
}

void graph_map(Process& self, Communicator& comm, int nnodes, const int index[], const int edges[],
               int* newrank) {
  check_intra(comm, "comm");
  const Graph graph = checked(comm, nnodes, index, edges);
  *newrank = vertex_of(comm, ranks_of_nodes(self, comm, true, graph));
}

void graphdims_get(Process&, Communicator& comm, int* nnodes, int* nedges) {
  const Graph& g = graph(comm);
  *nnodes = static_cast<int>(g.index.size());
  *nedges = static_cast<int>(g.edges.size());
}

void graph_get(Process&, Communicator& comm, int maxindex, int maxedges, int index[], int edges[]) {
  const Graph& g = graph(comm);
  check_room(maxindex, g.index.size(), "maxindex", "nodes");
  check_room(maxedges, g.edges.size(), "maxedges", "edges");
  std::ranges::copy(g.index, index);
  std::ranges::copy(g.edges, edges);
}

void graph_neighbors_count(Process&, Communicator& comm, int rank, int* nneighbors) {
  *nneighbors = static_cast<int>(graph(comm).neighbors(rank).size());
}

void graph_neighbors(Process&, Communicator& comm, int rank, int maxneighbors, int neighbors[]) {
  const std::vector<int> found = graph(comm).neighbors(rank);
  check_room(maxneighbors, found.size(), "maxneighbors", "neighbours");
  std::ranges::copy(found, neighbors);
}

} // namespace macadam::mpi
