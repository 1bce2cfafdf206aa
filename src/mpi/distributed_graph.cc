// SPDX-License-Identifier: BSD-3-Clause
// Distributed graph topologies: each rank knows its own neighbours only.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/process.h"
#include "mpi/topology.h"
#include "mpi/topology_create.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace macadam::mpi {
namespace {

struct Edge {
  int source;
  int destination;
  int weight;
};

// One side of the graph, as the user describes it.
struct Direction {
  const char* name;         // of the parameter with the ranks
  const char* weights_name; // and of that with the weights
  std::span<const int> ranks;
  const int* weights;

  [[nodiscard]] int weight(std::size_t i) const {
    return weights == MPI_UNWEIGHTED ? 1 : weights[i];
  }
};

void check(const Communicator& comm, const Direction& side) {
  for (std::size_t i = 0; i < side.ranks.size(); ++i) {
    if (side.ranks[i] < 0 || side.ranks[i] >= comm.size()) {
      base::fail(MPI_ERR_RANK, "{}[{}] is {}; give a rank of {}, 0 to {}", side.name, i,
                 side.ranks[i], describe(comm), comm.size() - 1);
    }
  }
  if (side.weights == MPI_UNWEIGHTED || side.ranks.empty()) return;
  if (side.weights == nullptr || side.weights == MPI_WEIGHTS_EMPTY) {
    base::fail(MPI_ERR_ARG,
               "{} is {}, but there are {} edges; give a weight for each, or MPI_UNWEIGHTED",
               side.weights_name, side.weights == nullptr ? "a null pointer" : "MPI_WEIGHTS_EMPTY",
               side.ranks.size());
  }
  for (std::size_t i = 0; i < side.ranks.size(); ++i) {
    if (side.weight(i) < 0) {
      base::fail(MPI_ERR_ARG, "{}[{}] is {}; give a weight of 0 or more", side.weights_name, i,
                 side.weight(i));
    }
  }
}

// --- Edges to the ranks that they concern --------------------------------------------------------

// Gives each edge to the rank that `owner` names, in the order of the ranks that gave them and of
// their lists: both ends of parallel edges see these in the same order. Collective.
std::vector<Edge> deliver(Process& self, Communicator& comm, std::vector<Edge> edges,
                          int Edge::*owner) {
  std::ranges::stable_sort(edges, {}, owner);
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<MPI_Count> given(ranks), got(ranks);
  for (const Edge& edge : edges)
    given[static_cast<std::size_t>(edge.*owner)] += sizeof(Edge);
  alltoall_bytes(self, comm, given.data(), sizeof(MPI_Count), got.data());
  const MPI_Count bytes = std::accumulate(got.begin(), got.end(), MPI_Count{0});
  std::vector<Edge> mine(static_cast<std::size_t>(bytes) / sizeof(Edge));
  alltoallv_bytes(self, comm, edges.data(), given, mine.data(), got);
  return mine;
}

// All edges of all ranks, on all ranks. Collective.
std::vector<Edge> gather_all(Process& self, Communicator& comm, const std::vector<Edge>& edges) {
  std::vector<MPI_Count> counts(static_cast<std::size_t>(comm.size()));
  const auto bytes = static_cast<MPI_Count>(edges.size() * sizeof(Edge));
  allgather_bytes(self, comm, &bytes, sizeof bytes, counts.data());
  const MPI_Count total = std::accumulate(counts.begin(), counts.end(), MPI_Count{0});
  std::vector<Edge> all(static_cast<std::size_t>(total) / sizeof(Edge));
  allgatherv_bytes(self, comm, edges.data(), edges.size() * sizeof(Edge), all.data(), counts);
  return all;
}

// --- Made ----------------------------------------------------------------------------------------

// The neighbours of one vertex, as numbers of vertices.
struct Adjacent {
  std::vector<Edge> in;
  std::vector<Edge> out;
};

Topology topology_of(const Adjacent& adjacent, bool weighted) {
  DistributedGraph graph;
  graph.weighted = weighted;
  std::vector<int> sources, destinations;
  for (const Edge& edge : adjacent.in) {
    sources.push_back(edge.source);
    if (weighted) graph.source_weights.push_back(edge.weight);
  }
  for (const Edge& edge : adjacent.out) {
    destinations.push_back(edge.destination);
    if (weighted) graph.destination_weights.push_back(edge.weight);
  }
  return {std::move(graph), coll::Edges(std::move(sources)), coll::Edges(std::move(destinations))};
}

// `adjacent`: the neighbours of the vertex with this rank's number. Where another rank takes the
// vertex, it gets them. Collective.
MPI_Comm make(Process& self, Communicator& comm, Adjacent adjacent, bool weighted, bool reorder) {
  const int vertices = comm.size();
  const auto traffic = [&] {
    Traffic all(vertices);
    for (const Edge& edge : gather_all(self, comm, adjacent.out))
      all.add(edge.source, edge.destination, edge.weight);
    return all;
  };
  const std::vector<int> rank_of = ranks_of_vertices(self, comm, vertices, reorder, traffic);
  if (!std::ranges::is_sorted(rank_of)) {
    // In the new communicator vertices are ranks; here the rank that takes one is sought.
    const int own = vertex_of(comm, rank_of);
    const auto taker = [&](int vertex) { return rank_of[static_cast<std::size_t>(vertex)]; };
    const auto hand_over = [&](std::vector<Edge>& edges, int Edge::*end) {
      for (Edge& edge : edges)
        edge.*end = taker(edge.*end);
      edges = deliver(self, comm, std::move(edges), end);
      for (Edge& edge : edges)
        edge.*end = own;
    };
    hand_over(adjacent.in, &Edge::destination);
    hand_over(adjacent.out, &Edge::source);
  }
  return with_topology(take_vertices(self, comm, rank_of),
                       [&](int) { return topology_of(adjacent, weighted); });
}

// Hands out the first neighbours of one side, as many as there is room for.
void hand_out(const std::vector<int>& ranks, const std::vector<int>& weights, int room,
              int ranks_out[], int* weights_out, const char* name) {
  const auto n = std::min(ranks.size(), static_cast<std::size_t>(room));
  std::copy_n(ranks.begin(), n, ranks_out);
  if (weights.empty() || n == 0 || weights_out == MPI_UNWEIGHTED) return;
  if (weights_out == nullptr || weights_out == MPI_WEIGHTS_EMPTY)
    base::fail(
        MPI_ERR_ARG,
        "{} is {}, but there are weights of {} edges; make room for them, or give MPI_UNWEIGHTED",
        name, weights_out == nullptr ? "a null pointer" : "MPI_WEIGHTS_EMPTY", n);
  std::copy_n(weights.begin(), n, weights_out);
}

} // namespace

void dist_graph_create_adjacent(Process& self, Communicator& comm_old, int indegree,
                                const int sources[], const int* sourceweights, int outdegree,
                                const int destinations[], const int* destweights, Info*,
                                int reorder, MPI_Comm* comm_dist_graph) {
  check_intra(comm_old, "comm_old");
  const Direction in{
      "sources", "sourceweights", {sources, static_cast<std::size_t>(indegree)}, sourceweights};
  const Direction out{"destinations",
                      "destweights",
                      {destinations, static_cast<std::size_t>(outdegree)},
                      destweights};
  check(comm_old, in);
  check(comm_old, out);
  const bool in_weighted = sourceweights != MPI_UNWEIGHTED;
  const bool out_weighted = destweights != MPI_UNWEIGHTED;
  if (in_weighted != out_weighted && indegree > 0 && outdegree > 0) {
    const auto& [without, with] = in_weighted ? std::pair(out, in) : std::pair(in, out);
    base::fail(MPI_ERR_ARG,
               "{} is MPI_UNWEIGHTED, but {} is not; give MPI_UNWEIGHTED for both, or weights",
               without.weights_name, with.weights_name);
  }
  Adjacent adjacent;
  for (std::size_t i = 0; i < in.ranks.size(); ++i)
    adjacent.in.push_back({in.ranks[i], comm_old.rank(), in.weight(i)});
  for (std::size_t i = 0; i < out.ranks.size(); ++i)
    adjacent.out.push_back({comm_old.rank(), out.ranks[i], out.weight(i)});
  *comm_dist_graph =
      make(self, comm_old, std::move(adjacent), in_weighted || out_weighted, reorder != 0);
}

void dist_graph_create(Process& self, Communicator& comm_old, int n, const int sources[],
                       const int degrees[], const int destinations[], const int* weights, Info*,
                       int reorder, MPI_Comm* comm_dist_graph) {
  check_intra(comm_old, "comm_old");
  std::size_t total = 0;
  for (int i = 0; i < n; ++i) {
    if (degrees[i] < 0)
      base::fail(MPI_ERR_ARG, "degrees[{}] is {}; give 0 edges or more", i, degrees[i]);
    total += static_cast<std::size_t>(degrees[i]);
  }
  if (total > 0 && destinations == nullptr) {
    base::fail(MPI_ERR_ARG,
               "destinations is a null pointer, but degrees counts {} edges; give a rank for each",
               total);
  }
  check(comm_old, {"sources", "", {sources, static_cast<std::size_t>(n)}, MPI_UNWEIGHTED});
  const Direction side{"destinations", "weights", {destinations, total}, weights};
  check(comm_old, side);
  std::vector<Edge> edges;
  std::size_t next = 0;
  for (int i = 0; i < n; ++i) {
    for (int edge = 0; edge < degrees[i]; ++edge, ++next)
      edges.push_back({sources[i], side.ranks[next], side.weight(next)});
  }
  Adjacent adjacent;
  adjacent.in = deliver(self, comm_old, edges, &Edge::destination);
  adjacent.out = deliver(self, comm_old, std::move(edges), &Edge::source);
  *comm_dist_graph =
      make(self, comm_old, std::move(adjacent), weights != MPI_UNWEIGHTED, reorder != 0);
}

void dist_graph_neighbors_count(Process&, Communicator& comm, int* indegree, int* outdegree,
                                int* weighted) {
  *weighted = distributed_graph(comm).weighted ? 1 : 0;
  *indegree = in_neighbors(comm);
  *outdegree = out_neighbors(comm);
}

void dist_graph_neighbors(Process&, Communicator& comm, int maxindegree, int sources[],
                          int* sourceweights, int maxoutdegree, int destinations[],
                          int* destweights) {
  const DistributedGraph& graph = distributed_graph(comm);
  hand_out(comm.topology->sources.ranks(), graph.source_weights, maxindegree, sources,
           sourceweights, "sourceweights");
  hand_out(comm.topology->destinations.ranks(), graph.destination_weights, maxoutdegree,
           destinations, destweights, "destweights");
}

} // namespace macadam::mpi
