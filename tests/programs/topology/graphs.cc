// SPDX-License-Identifier: BSD-3-Clause
// Graph topologies, known as a whole by every rank or distributed.
#include "check.h"

#include <algorithm>

namespace {

MPI_Comm comm = MPI_COMM_NULL;

int wrapped(int rank) {
  return (rank + check::size) % check::size;
}

// Rank r of a ring with one edge more: everybody also talks to rank 0.
struct Ring {
  std::vector<int> index, edges;
  Ring() {
    for (int rank = 0; rank < check::size; ++rank) {
      edges.insert(edges.end(), {wrapped(rank - 1), wrapped(rank + 1), 0});
      index.push_back(static_cast<int>(edges.size()));
    }
  }
};

void graph_is_what_was_given() {
  const Ring ring;
  OK(MPI_Graph_create(MPI_COMM_WORLD, check::size, ring.index.data(), ring.edges.data(), 1, &comm));
  int status = 0, nodes = 0, edges = 0;
  OK(MPI_Topo_test(comm, &status));
  CHECK_EQUAL(status, MPI_GRAPH);
  OK(MPI_Graphdims_get(comm, &nodes, &edges));
  CHECK_EQUAL(nodes, check::size);
  CHECK_EQUAL(edges, 3 * check::size);
  Ring found;
  std::ranges::fill(found.index, -1);
  std::ranges::fill(found.edges, -1);
  OK(MPI_Graph_get(comm, nodes, edges, found.index.data(), found.edges.data()));
  CHECK(found.index == ring.index);
  CHECK(found.edges == ring.edges);
  for (int rank = 0; rank < check::size; ++rank) {
    int count = 0, neighbors[3] = {-1, -1, -1};
    OK(MPI_Graph_neighbors_count(comm, rank, &count));
    CHECK_EQUAL(count, 3);
    OK(MPI_Graph_neighbors(comm, rank, 3, neighbors));
    CHECK_EQUAL(neighbors[0], wrapped(rank - 1));
    CHECK_EQUAL(neighbors[1], wrapped(rank + 1));
    CHECK_EQUAL(neighbors[2], 0);
  }
  OK(MPI_Comm_free(&comm));
}

void graph_of_some_ranks() {
  const int index[] = {1}, edges[] = {0}; // one node that talks to itself
  comm = MPI_COMM_SELF;
  OK(MPI_Graph_create(MPI_COMM_WORLD, 1, index, edges, 0, &comm));
  CHECK_EQUAL(comm == MPI_COMM_NULL, check::rank > 0);
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
  OK(MPI_Graph_create(MPI_COMM_WORLD, 0, nullptr, nullptr, 0, &comm));
  CHECK(comm == MPI_COMM_NULL);
  int place = -7;
  OK(MPI_Graph_map(MPI_COMM_WORLD, 1, index, edges, &place));
  CHECK_EQUAL(place, check::rank == 0 ? 0 : MPI_UNDEFINED);
}

// What a rank sees of a distributed graph.
struct Seen {
  std::vector<int> sources, source_weights, destinations, destination_weights;
  int weighted = -1;

  explicit Seen(MPI_Comm of) {
    int in = -1, out = -1;
    OK(MPI_Dist_graph_neighbors_count(of, &in, &out, &weighted));
    sources.assign(static_cast<std::size_t>(in), -1);
    destinations.assign(static_cast<std::size_t>(out), -1);
    source_weights = sources;
    destination_weights = destinations;
    OK(MPI_Dist_graph_neighbors(
        of, in, sources.data(), weighted ? source_weights.data() : MPI_UNWEIGHTED, out,
        destinations.data(), weighted ? destination_weights.data() : MPI_UNWEIGHTED));
  }
};

void adjacent() {
  const std::vector<int> in = {wrapped(check::rank - 1), check::rank},
                         out = {wrapped(check::rank + 1), check::rank};
  const std::vector<int> in_weights = {5, 0}, out_weights = {5, 0};
  for (const bool weighted : {false, true}) {
    OK(MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, 2, in.data(), weighted ? in_weights.data() : MPI_UNWEIGHTED, 2, out.data(),
        weighted ? out_weights.data() : MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &comm));
    int status = 0;
    OK(MPI_Topo_test(comm, &status));
    CHECK_EQUAL(status, MPI_DIST_GRAPH);
    const Seen seen(comm);
    CHECK_EQUAL(seen.weighted != 0, weighted);
    CHECK(seen.sources == in);
    CHECK(seen.destinations == out);
    if (weighted) CHECK(seen.source_weights == in_weights);
    if (weighted) CHECK(seen.destination_weights == out_weights);
    // Less room: only the first. MPICH 5.0 refuses it.
    if (!check::is_macadam()) {
      OK(MPI_Comm_free(&comm));
      continue;
    }
    int first = -1, none = -1;
    OK(MPI_Dist_graph_neighbors(comm, 1, &first, MPI_UNWEIGHTED, 0, &none, MPI_UNWEIGHTED));
    CHECK_EQUAL(first, in[0]);
    CHECK_EQUAL(none, -1);
    OK(MPI_Comm_free(&comm));
  }
}

void without_edges() {
  int none = 0;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, &none, MPI_WEIGHTS_EMPTY, 0, &none,
                                    MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm));
  CHECK(Seen(comm).sources.empty());
  OK(MPI_Comm_free(&comm));
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, &none, &none, &none, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                           &comm));
  CHECK(Seen(comm).destinations.empty());
  CHECK_EQUAL(Seen(comm).weighted, 0);
  OK(MPI_Comm_free(&comm));
}

// Rank r tells of the edges of rank r + 1: two to rank r + 2 and one to itself.
void told_by_others() {
  const int teller = wrapped(check::rank + 1), next = wrapped(check::rank + 2);
  const int sources[] = {teller, teller}, degrees[] = {2, 1};
  const int destinations[] = {next, next, teller}, weights[] = {10 * teller, 7, 3};
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 2, sources, degrees, destinations, weights,
                           MPI_INFO_NULL, 0, &comm));
  const Seen seen(comm);
  const auto has = [](const std::vector<int>& ranks, const std::vector<int>& with, int rank,
                      int weight) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == rank && with[i] == weight) return true;
    return false;
  };
  const int before = wrapped(check::rank - 1), after = wrapped(check::rank + 1);
  CHECK(seen.weighted != 0);
  CHECK_EQUAL(seen.sources.size(), 3u);
  CHECK_EQUAL(seen.destinations.size(), 3u);
  CHECK(has(seen.sources, seen.source_weights, before, 10 * before));
  CHECK(has(seen.sources, seen.source_weights, before, 7));
  CHECK(has(seen.sources, seen.source_weights, check::rank, 3));
  CHECK(has(seen.destinations, seen.destination_weights, after, 10 * check::rank));
  CHECK(has(seen.destinations, seen.destination_weights, after, 7));
  CHECK(has(seen.destinations, seen.destination_weights, check::rank, 3));
  MPI_Comm copy = MPI_COMM_NULL;
  OK(MPI_Comm_dup(comm, &copy));
  OK(MPI_Comm_free(&comm));
  CHECK(Seen(copy).sources == seen.sources);
  OK(MPI_Comm_free(&copy));
}

// One rank tells of a whole star.
void told_by_one() {
  std::vector<int> others;
  for (int rank = 0; rank < check::size; ++rank)
    others.push_back(rank);
  const int source = check::size - 1, degree = check::size;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, check::rank == 0 ? 1 : 0, &source, &degree,
                           others.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &comm));
  const Seen seen(comm);
  CHECK_EQUAL(seen.sources.size(), 1u);
  CHECK_EQUAL(seen.sources[0], source);
  int rank = 0; // another one where neighbours came onto one machine
  OK(MPI_Comm_rank(comm, &rank));
  CHECK(seen.destinations == (rank == source ? others : std::vector<int>{}));
  OK(MPI_Comm_free(&comm));
}

void refused() {
  if (!check::is_macadam()) return; // MPICH 5.0 has other classes, checks less, or crashes
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const MPI_Comm world = MPI_COMM_WORLD;
  const int beyond = check::size, falling[] = {1, 0}, one = 1, zero = 0, minus = -1;
  FAILS(MPI_ERR_ARG, MPI_Graph_create(world, beyond + 1, falling, &zero, 0, &comm));
  FAILS(MPI_ERR_ARG, MPI_Graph_create(world, 1, &one, &beyond, 0, &comm));
  FAILS(MPI_ERR_ARG, MPI_Graph_create(world, -1, &one, &zero, 0, &comm));
  if (check::size > 1) FAILS(MPI_ERR_ARG, MPI_Graph_create(world, 2, falling, &zero, 0, &comm));
  const auto adjacent_of = [&](int source, const int* weights) {
    return MPI_Dist_graph_create_adjacent(world, 1, &source, weights, 0, nullptr, MPI_UNWEIGHTED,
                                          MPI_INFO_NULL, 0, &comm);
  };
  FAILS(MPI_ERR_RANK, adjacent_of(beyond, MPI_UNWEIGHTED));
  FAILS(MPI_ERR_RANK, adjacent_of(-1, MPI_UNWEIGHTED));
  FAILS(MPI_ERR_ARG, adjacent_of(0, &minus));
  FAILS(MPI_ERR_ARG, adjacent_of(0, nullptr));
  FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(world, 1, &zero, &minus, &zero, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &comm));
  FAILS(MPI_ERR_RANK, MPI_Dist_graph_create(world, 1, &zero, &one, &beyond, MPI_UNWEIGHTED,
                                            MPI_INFO_NULL, 0, &comm));
  int found = 0;
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(world, 0, &found));
  OK(MPI_Graph_create(world, check::size, Ring().index.data(), Ring().edges.data(), 0, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_RANK, MPI_Graph_neighbors_count(comm, beyond, &found));
  FAILS(MPI_ERR_ARG, MPI_Graph_neighbors(comm, 0, 2, Ring().edges.data()));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(comm, &found));
  FAILS(MPI_ERR_RANK, MPI_Graph_neighbors(comm, -1, 3, Ring().edges.data()));
  std::vector<int> room(static_cast<std::size_t>(4 * check::size));
  FAILS(MPI_ERR_ARG, MPI_Graph_get(comm, 0, 3 * check::size, room.data(), room.data()));
  FAILS(MPI_ERR_ARG, MPI_Graph_get(comm, check::size, 1, room.data(), room.data()));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(world, &found, &found));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_get(world, 1, 1, room.data(), room.data()));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors(comm, 0, room.data(), MPI_UNWEIGHTED, 0,
                                                   room.data(), MPI_UNWEIGHTED));
  MPI_Comm none = MPI_COMM_NULL;
  FAILS(MPI_ERR_ARG, MPI_Graph_map(world, 1, &one, &beyond, &found));
  FAILS(MPI_ERR_ARG, MPI_Graph_create(world, 1, &one, nullptr, 0, &none));
  CHECK(none == MPI_COMM_NULL);
  OK(MPI_Comm_free(&comm));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"graph_is_what_was_given", graph_is_what_was_given},
                     {"graph_of_some_ranks", graph_of_some_ranks},
                     {"adjacent", adjacent},
                     {"without_edges", without_edges},
                     {"told_by_others", told_by_others},
                     {"told_by_one", told_by_one},
                     {"refused", refused}});
}
