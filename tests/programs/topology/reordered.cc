// SPDX-License-Identifier: BSD-3-Clause
// Communicators whose ranks may trade places: whoever takes a vertex has its neighbours, their
// weights and their order, and MPI_Cart_map and MPI_Graph_map tell the place that the constructor
// gives. Ranks trade places where the job has several machines.
#include "check.h"

#include <algorithm>
#include <random>

namespace {

struct Edge {
  int source, destination, weight;
  auto operator<=>(const Edge&) const = default;
};

// The same on all ranks: parallel edges and loops among them. Weights differ, so that they name the
// edge.
std::vector<Edge> random_edges(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  std::vector<Edge> edges;
  for (int i = below(4 * check::size + 1); i > 0; --i) {
    const int from = below(check::size), to = below(4) == 0 ? from : below(check::size);
    edges.push_back({from, to, i});
    if (below(4) == 0) edges.push_back({from, to, 1000 + i});
  }
  return edges;
}

// One end of the edges of a vertex, as a rank sees them.
struct Side {
  std::vector<int> ranks, weights;
  int size() const { return static_cast<int>(ranks.size()); }
  void add(int rank, int weight) {
    ranks.push_back(rank);
    weights.push_back(weight);
  }
  bool operator==(const Side&) const = default;
};

Side sources_of(const std::vector<Edge>& edges, int vertex) {
  Side side;
  for (const Edge& edge : edges)
    if (edge.destination == vertex) side.add(edge.source, edge.weight);
  return side;
}
Side destinations_of(const std::vector<Edge>& edges, int vertex) {
  Side side;
  for (const Edge& edge : edges)
    if (edge.source == vertex) side.add(edge.destination, edge.weight);
  return side;
}

std::vector<std::pair<int, int>> sorted(const std::vector<int>& ranks,
                                        const std::vector<int>& weights) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    pairs.emplace_back(ranks[i], weights[i]);
  std::ranges::sort(pairs);
  return pairs;
}

// The neighbours that MPI tells, and each edge brings its own weight. `ordered`: parallel edges are
// in one order at both of their ends, which MPI leaves open where others told of the edges: MPICH
// lists them as they come.
std::pair<Side, Side> seen(MPI_Comm comm, bool ordered) {
  Side in, out;
  int indegree = -1, outdegree = -1, weighted = -1;
  OK(MPI_Dist_graph_neighbors_count(comm, &indegree, &outdegree, &weighted));
  CHECK(weighted != 0);
  in.ranks.resize(static_cast<std::size_t>(indegree));
  in.weights = in.ranks;
  out.ranks.resize(static_cast<std::size_t>(outdegree));
  out.weights = out.ranks;
  OK(MPI_Dist_graph_neighbors(comm, indegree, in.ranks.data(), in.weights.data(), outdegree,
                              out.ranks.data(), out.weights.data()));
  // One more than there are neighbours: MPICH 5.0 wants an address even where there are none.
  std::vector<int> given = out.weights, got(in.weights.size() + 1, -1);
  given.push_back(0);
  OK(MPI_Neighbor_alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, comm));
  got.pop_back();
  CHECK(sorted(in.ranks, got) == sorted(in.ranks, in.weights));
  if (ordered) CHECK(got == in.weights);
  return {in, out};
}

void adjacent() {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<Edge> edges = random_edges(seed);
    const Side in = sources_of(edges, check::rank), out = destinations_of(edges, check::rank);
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in.size(), in.ranks.data(), in.weights.data(),
                                      out.size(), out.ranks.data(), out.weights.data(),
                                      MPI_INFO_NULL, 1, &comm));
    int vertex = -1;
    OK(MPI_Comm_rank(comm, &vertex));
    const auto [sources, destinations] = seen(comm, true);
    CHECK(sources == sources_of(edges, vertex));
    CHECK(destinations == destinations_of(edges, vertex));
    OK(MPI_Comm_free(&comm));
  }
}

// Every edge is told by some rank, none of its ends.
void told_by_others() {
  for (unsigned seed = 100; seed < 120; ++seed) {
    const std::vector<Edge> edges = random_edges(seed);
    std::mt19937 random(seed);
    std::vector<int> sources, degrees, destinations, weights;
    for (const Edge& edge : edges) {
      if (static_cast<int>(random() % static_cast<unsigned>(check::size)) != check::rank) continue;
      sources.push_back(edge.source);
      degrees.push_back(1);
      destinations.push_back(edge.destination);
      weights.push_back(edge.weight);
    }
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                             degrees.data(), destinations.data(), weights.data(), MPI_INFO_NULL, 1,
                             &comm));
    int vertex = -1;
    OK(MPI_Comm_rank(comm, &vertex));
    const auto [in, out] = seen(comm, check::is_macadam());
    const Side from = sources_of(edges, vertex), to = destinations_of(edges, vertex);
    CHECK(sorted(in.ranks, in.weights) == sorted(from.ranks, from.weights));
    CHECK(sorted(out.ranks, out.weights) == sorted(to.ranks, to.weights));
    OK(MPI_Comm_free(&comm));
  }
}

// Neighbours of a grid, and of a graph, by what they send; some ranks may be left over.
void places() {
  for (int left_over = 0; left_over < 2 && left_over < check::size; ++left_over) {
    const int cells = check::size - left_over;
    for (int ndims = 1; ndims <= 3; ++ndims) {
      std::vector<int> dims(static_cast<std::size_t>(ndims)), periods(dims.size(), 1);
      OK(MPI_Dims_create(cells, ndims, dims.data()));
      MPI_Comm grid = MPI_COMM_NULL;
      int place = -7, rank = MPI_UNDEFINED;
      OK(MPI_Cart_map(MPI_COMM_WORLD, ndims, dims.data(), periods.data(), &place));
      OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims.data(), periods.data(), 1, &grid));
      if (grid != MPI_COMM_NULL) {
        OK(MPI_Comm_rank(grid, &rank));
        std::vector<int> got(2 * dims.size(), -1);
        OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, got.data(), 1, MPI_INT, grid));
        for (int i = 0; i < ndims; ++i) {
          int before = -1, after = -1;
          OK(MPI_Cart_shift(grid, i, 1, &before, &after));
          CHECK_EQUAL(got[static_cast<std::size_t>(2 * i)], before);
          CHECK_EQUAL(got[static_cast<std::size_t>(2 * i + 1)], after);
        }
        OK(MPI_Comm_free(&grid));
      }
      CHECK_EQUAL(place, rank);
    }
    std::vector<int> index, edges; // everybody with the vertex opposite
    for (int vertex = 0; vertex < cells; ++vertex) {
      edges.push_back(cells - 1 - vertex);
      index.push_back(vertex + 1);
    }
    MPI_Comm graph = MPI_COMM_NULL;
    int place = -7, rank = MPI_UNDEFINED;
    OK(MPI_Graph_map(MPI_COMM_WORLD, cells, index.data(), edges.data(), &place));
    OK(MPI_Graph_create(MPI_COMM_WORLD, cells, index.data(), edges.data(), 1, &graph));
    if (graph != MPI_COMM_NULL) {
      OK(MPI_Comm_rank(graph, &rank));
      int got = -1;
      OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, graph));
      CHECK_EQUAL(got, cells - 1 - rank);
      OK(MPI_Comm_free(&graph));
    }
    CHECK_EQUAL(place, rank);
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv, {{"adjacent", adjacent}, {"told_by_others", told_by_others}, {"places", places}});
}
