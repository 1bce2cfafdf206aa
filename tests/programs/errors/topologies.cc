// SPDX-License-Identifier: BSD-3-Clause
// Every bad argument of the functions of topologies, in the order of their parameters; those of the
// neighbourhood collectives: errors/neighbors.cc.
#include "errors/text.h"

namespace {

using text::give_memory;
using text::give_valid;
using text::Wrong;

const MPI_Comm world = MPI_COMM_WORLD, nobody = MPI_COMM_NULL;
const char* const null = "a null pointer";
const char* const no_comm = "MPI_COMM_NULL";
const char* const flat_comm = "communicator MPI_COMM_WORLD, which has no";
const char* const in_groups = "communicator groups, an intercommunicator";
int* const none = nullptr;
int number, other, third, room[64];
MPI_Comm made = MPI_COMM_NULL;

// Objects that a function does not take: an intercommunicator, where there are two ranks, a
// communicator without a topology, and an info object that was freed.
MPI_Comm between = MPI_COMM_NULL;
MPI_Info freed_info = MPI_INFO_NULL;
std::string freed_text;

void make_wrong_objects() {
  MPI_Comm half = MPI_COMM_NULL;
  if (check::size > 1) {
    OK(MPI_Comm_split(world, check::rank > 0 ? 1 : 0, check::rank, &half));
    OK(MPI_Intercomm_create(half, 0, world, check::rank > 0 ? 0 : 1, 3, &between));
    OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_name(between, "groups"));
    OK(MPI_Comm_free(&half));
  }
  MPI_Info info = MPI_INFO_NULL;
  OK(MPI_Info_create(&info));
  freed_info = info;
  OK(MPI_Info_free(&info));
  char text[32];
  std::snprintf(text, sizeof text, "%p", reinterpret_cast<void*>(freed_info));
  freed_text = text;
}

void all_refused(const std::vector<Wrong>& list) {
  for (const Wrong& wrong : list) {
    if (wrong.found == in_groups && between == MPI_COMM_NULL) continue;
    made = MPI_COMM_NULL;
    text::refused(wrong);
    CHECK(made == MPI_COMM_NULL);
  }
}

void creating_grids() {
  if (!check::is_macadam()) return; // MPICH 5.0 has other classes, checks less, or crashes
  static const int flat = 0, negative = -1, zero = 0, open[2] = {0, 0}, too_large[] = {1000, 1};
  text::return_errors(world);
  make_wrong_objects();
  all_refused({
      {"MPI_Cart_create", "comm_old", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_create(nobody, 1, &check::size, &flat, 0, &made); }},
      {"MPI_Cart_create", "comm_old", in_groups, "give an intracommunicator", MPI_ERR_COMM,
       [] { return MPI_Cart_create(between, 1, &check::size, &flat, 0, &made); }},
      {"MPI_Cart_create", "ndims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, -1, &check::size, &flat, 0, &made); }},
      {"MPI_Cart_create", "dims", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, 1, none, &flat, 0, &made); }},
      {"MPI_Cart_create", "dims[0]", "0", "give 1 position or more", MPI_ERR_DIMS,
       [] { return MPI_Cart_create(world, 1, &zero, &flat, 0, &made); }},
      {"MPI_Cart_create", "dims[0]", "-1", "give 1 position or more", MPI_ERR_DIMS,
       [] { return MPI_Cart_create(world, 1, &negative, &flat, 0, &made); }},
      {"MPI_Cart_create", "dims[0] to dims[0]", "1000", "give smaller", MPI_ERR_DIMS,
       [] { return MPI_Cart_create(world, 2, too_large, open, 0, &made); }},
      {"MPI_Cart_create", "periods", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, 1, &check::size, none, 0, &made); }},
      {"MPI_Cart_create", "comm_cart", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, 1, &check::size, &flat, 0, nullptr); }},
      {"MPI_Cart_map", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_map(nobody, 1, &check::size, &flat, &number); }},
      {"MPI_Cart_map", "comm", in_groups, "give an intracommunicator", MPI_ERR_COMM,
       [] { return MPI_Cart_map(between, 1, &check::size, &flat, &number); }},
      {"MPI_Cart_map", "ndims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Cart_map(world, -1, &check::size, &flat, &number); }},
      {"MPI_Cart_map", "dims", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_map(world, 1, none, &flat, &number); }},
      {"MPI_Cart_map", "dims[0]", "-1", "give 1 position or more", MPI_ERR_DIMS,
       [] { return MPI_Cart_map(world, 1, &negative, &flat, &number); }},
      {"MPI_Cart_map", "dims[0] to dims[0]", "1000", "give smaller", MPI_ERR_DIMS,
       [] { return MPI_Cart_map(world, 2, too_large, open, &number); }},
      {"MPI_Cart_map", "periods", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_map(world, 1, &check::size, none, &number); }},
      {"MPI_Cart_map", "newrank", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_map(world, 1, &check::size, &flat, none); }},
      {"MPI_Dims_create", "nnodes", "0", "give 1 node or more", MPI_ERR_DIMS,
       [] {
         room[0] = 0;
         return MPI_Dims_create(0, 1, room);
       }},
      {"MPI_Dims_create", "nnodes", "-4", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Dims_create(-4, 1, room); }},
      {"MPI_Dims_create", "nnodes", "4", "give sizes", MPI_ERR_DIMS,
       [] {
         room[0] = 3;
         return MPI_Dims_create(4, 1, room);
       }},
      {"MPI_Dims_create", "nnodes", "4", "give sizes", MPI_ERR_DIMS,
       [] {
         room[0] = 2;
         return MPI_Dims_create(4, 1, room);
       }},
      {"MPI_Dims_create", "ndims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Dims_create(4, -1, room); }},
      {"MPI_Dims_create", "dims", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Dims_create(4, 1, none); }},
      {"MPI_Dims_create", "dims[0]", "-3", "0 where", MPI_ERR_DIMS,
       [] {
         room[0] = -3;
         return MPI_Dims_create(4, 1, room);
       }},
      {"MPI_Topo_test", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Topo_test(nobody, &number); }},
      {"MPI_Topo_test", "status", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Topo_test(world, none); }},
  });
  text::nothing_lost(world);
}

void asking_grids() {
  if (!check::is_macadam()) return;
  static const int flat = 0, negative = -1, zero = 0;
  static MPI_Comm grid;
  OK(MPI_Cart_create(world, 1, &check::size, &flat, 0, &grid));
  text::return_errors(grid);
  static const int beyond = check::size;
  static const std::string beyond_text = std::to_string(beyond);
  const char* const remedy = "make a communicator with MPI_Cart_create first";
  all_refused({
      {"MPI_Cartdim_get", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cartdim_get(nobody, &number); }},
      {"MPI_Cartdim_get", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Cartdim_get(world, &number); }},
      {"MPI_Cartdim_get", "ndims", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cartdim_get(grid, none); }},
      {"MPI_Cart_get", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_get(nobody, 1, &number, &other, &third); }},
      {"MPI_Cart_get", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Cart_get(world, 1, &number, &other, &third); }},
      {"MPI_Cart_get", "maxdims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, -1, &number, &other, &third); }},
      {"MPI_Cart_get", "maxdims", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 0, &number, &other, &third); }},
      {"MPI_Cart_get", "dims", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 1, none, &other, &third); }},
      {"MPI_Cart_get", "periods", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 1, &number, none, &third); }},
      {"MPI_Cart_get", "coords", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 1, &number, &other, none); }},
      {"MPI_Cart_rank", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_rank(nobody, &zero, &number); }},
      {"MPI_Cart_rank", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Cart_rank(world, &zero, &number); }},
      {"MPI_Cart_rank", "coords", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, none, &number); }},
      {"MPI_Cart_rank", "coords[0]", "-1", "give a position from 0 to", MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, &negative, &number); }},
      {"MPI_Cart_rank", "coords[0]", beyond_text.c_str(), "give a position from 0 to", MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, &beyond, &number); }},
      {"MPI_Cart_rank", "rank", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, &zero, none); }},
      {"MPI_Cart_coords", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_coords(nobody, 0, 1, &number); }},
      {"MPI_Cart_coords", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Cart_coords(world, 0, 1, &number); }},
      {"MPI_Cart_coords", "rank", "-1", "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Cart_coords(grid, -1, 1, &number); }},
      {"MPI_Cart_coords", "rank", beyond_text.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Cart_coords(grid, beyond, 1, &number); }},
      {"MPI_Cart_coords", "maxdims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Cart_coords(grid, 0, -1, &number); }},
      {"MPI_Cart_coords", "maxdims", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Cart_coords(grid, 0, 0, &number); }},
      {"MPI_Cart_coords", "coords", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_coords(grid, 0, 1, none); }},
      {"MPI_Cart_shift", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_shift(nobody, 0, 1, &number, &other); }},
      {"MPI_Cart_shift", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Cart_shift(world, 0, 1, &number, &other); }},
      {"MPI_Cart_shift", "direction", "1", "give the number of one", MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, 1, 1, &number, &other); }},
      {"MPI_Cart_shift", "direction", "-1", "give the number of one", MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, -1, 1, &number, &other); }},
      {"MPI_Cart_shift", "rank_source", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, 0, 1, none, &other); }},
      {"MPI_Cart_shift", "rank_dest", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, 0, 1, &number, none); }},
      {"MPI_Cart_sub", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Cart_sub(nobody, &zero, &made); }},
      {"MPI_Cart_sub", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Cart_sub(world, &zero, &made); }},
      {"MPI_Cart_sub", "remain_dims", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_sub(grid, none, &made); }},
      {"MPI_Cart_sub", "newcomm", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Cart_sub(grid, &zero, nullptr); }},
  });
  text::nothing_lost(grid);
  OK(MPI_Comm_free(&grid));
}

// Each rank its own neighbour.
MPI_Comm loops() {
  MPI_Comm graph = MPI_COMM_NULL;
  std::vector<int> index, edges;
  for (int i = 0; i < check::size; ++i) {
    index.push_back(i + 1);
    edges.push_back(i);
  }
  OK(MPI_Graph_create(world, check::size, index.data(), edges.data(), 0, &graph));
  return graph;
}

void graphs() {
  if (!check::is_macadam()) return;
  static const int zero = 0, one = 1, negative = -1, beyond = check::size, falling[] = {2, 1};
  static const std::string beyond_text = std::to_string(beyond),
                           more_text = std::to_string(beyond + 1);
  static MPI_Comm graph;
  graph = loops();
  text::return_errors(graph);
  const char* const remedy = "make a communicator with MPI_Graph_create first";
  // Both that are given a graph, under the names that each has for its communicator and its result.
  struct Giving {
    const char *function, *comm, *result;
    int (*call)(MPI_Comm comm, int nnodes, const int* indx, const int* edges, bool keep);
  };
  for (const Giving& giving :
       {Giving{"MPI_Graph_create", "comm_old", "comm_graph",
               [](MPI_Comm comm, int nnodes, const int*indx, const int*edges, bool keep) {
                 return MPI_Graph_create(comm, nnodes, indx, edges, 0, keep ? &made : nullptr);
               }},
        Giving{"MPI_Graph_map", "comm", "newrank",
               [](MPI_Comm comm, int nnodes, const int*indx, const int*edges, bool keep) {
                 return MPI_Graph_map(comm, nnodes, indx, edges, keep ? &number : none);
               }}}) {
    const auto call = giving.call;
    std::vector<Wrong> list = {
        {giving.function, giving.comm, no_comm, give_valid, MPI_ERR_COMM,
         [=] { return call(nobody, 1, &one, &zero, true); }},
        {giving.function, giving.comm, in_groups, "give an intracommunicator", MPI_ERR_COMM,
         [=] { return call(between, 1, &one, &zero, true); }},
        {giving.function, "nnodes", "-1", "must not be negative", MPI_ERR_ARG,
         [=] { return call(world, -1, &one, &zero, true); }},
        {giving.function, "nnodes", more_text.c_str(), "give fewer", MPI_ERR_ARG,
         [=] { return call(world, beyond + 1, room, &zero, true); }},
        {giving.function, "index", null, give_memory, MPI_ERR_ARG,
         [=] { return call(world, 1, none, &zero, true); }},
        {giving.function, "index[0]", "-1", "give numbers that do not fall", MPI_ERR_ARG,
         [=] { return call(world, 1, &negative, &zero, true); }},
        {giving.function, "edges", null, "give a node for each", MPI_ERR_ARG,
         [=] { return call(world, 1, &one, none, true); }},
        {giving.function, "edges[0]", beyond_text.c_str(), "give a node of the graph", MPI_ERR_ARG,
         [=] { return call(world, 1, &one, &beyond, true); }},
        {giving.function, "edges[0]", "-1", "give a node of the graph", MPI_ERR_ARG,
         [=] { return call(world, 1, &one, &negative, true); }},
        {giving.function, giving.result, null, give_memory, MPI_ERR_ARG,
         [=] { return call(world, 1, &one, &zero, false); }},
    };
    if (check::size > 1)
      list.push_back({giving.function, "index[1]", "1", "give numbers that do not fall",
                      MPI_ERR_ARG, [=] { return call(world, 2, falling, room, true); }});
    all_refused(list);
  }
  all_refused({
      {"MPI_Graphdims_get", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Graphdims_get(nobody, &number, &other); }},
      {"MPI_Graphdims_get", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Graphdims_get(world, &number, &other); }},
      {"MPI_Graphdims_get", "nnodes", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Graphdims_get(graph, none, &other); }},
      {"MPI_Graphdims_get", "nedges", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Graphdims_get(graph, &number, none); }},
      {"MPI_Graph_get", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Graph_get(nobody, 64, 64, room, room); }},
      {"MPI_Graph_get", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Graph_get(world, 64, 64, room, room); }},
      {"MPI_Graph_get", "maxindex", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, -1, 64, room, room); }},
      {"MPI_Graph_get", "maxindex", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 0, 64, room, room); }},
      {"MPI_Graph_get", "maxedges", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 64, -1, room, room); }},
      {"MPI_Graph_get", "maxedges", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 64, 0, room, room); }},
      {"MPI_Graph_get", "index", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 64, 64, none, room); }},
      {"MPI_Graph_get", "edges", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 64, 64, room, none); }},
      {"MPI_Graph_neighbors_count", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Graph_neighbors_count(nobody, 0, &number); }},
      {"MPI_Graph_neighbors_count", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Graph_neighbors_count(world, 0, &number); }},
      {"MPI_Graph_neighbors_count", "rank", "-1", "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Graph_neighbors_count(graph, -1, &number); }},
      {"MPI_Graph_neighbors_count", "rank", beyond_text.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Graph_neighbors_count(graph, beyond, &number); }},
      {"MPI_Graph_neighbors_count", "nneighbors", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors_count(graph, 0, none); }},
      {"MPI_Graph_neighbors", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Graph_neighbors(nobody, 0, 1, room); }},
      {"MPI_Graph_neighbors", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Graph_neighbors(world, 0, 1, room); }},
      {"MPI_Graph_neighbors", "rank", "-1", "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Graph_neighbors(graph, -1, 1, room); }},
      {"MPI_Graph_neighbors", "rank", beyond_text.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Graph_neighbors(graph, beyond, 1, room); }},
      {"MPI_Graph_neighbors", "maxneighbors", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors(graph, 0, -1, room); }},
      {"MPI_Graph_neighbors", "maxneighbors", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors(graph, 0, 0, room); }},
      {"MPI_Graph_neighbors", "neighbors", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors(graph, 0, 1, none); }},
  });
  text::nothing_lost(graph);
  OK(MPI_Comm_free(&graph));
}

// Right arguments of the constructors of distributed graphs, of which one is then made wrong: an
// edge from rank 0 to rank 0.
struct Edge {
  static constexpr int zero = 0, one = 1;
  MPI_Comm comm_old = world;
  int indegree = 1, outdegree = 1, n = 1;
  const int *sources = &zero, *degrees = &one, *destinations = &zero;
  const int *sourceweights = &one, *destweights = &one, *weights = &one;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm* result = &made;
};

void distributed_graphs() {
  if (!check::is_macadam()) return;
  static const int negative = -1, beyond = check::size;
  static const std::string beyond_text = std::to_string(beyond);
  text::return_errors(world);
  const auto adjacent = [](const char* parameter, const char* found, const char* remedy, int error,
                           void (*spoil)(Edge&)) {
    Edge e;
    spoil(e);
    all_refused({{"MPI_Dist_graph_create_adjacent", parameter, found, remedy, error, [=] {
                    return MPI_Dist_graph_create_adjacent(
                        e.comm_old, e.indegree, e.sources, e.sourceweights, e.outdegree,
                        e.destinations, e.destweights, e.info, 0, e.result);
                  }}});
  };
  const auto general = [](const char* parameter, const char* found, const char* remedy, int error,
                          void (*spoil)(Edge&)) {
    Edge e;
    spoil(e);
    all_refused({{"MPI_Dist_graph_create", parameter, found, remedy, error, [=] {
                    return MPI_Dist_graph_create(e.comm_old, e.n, e.sources, e.degrees,
                                                 e.destinations, e.weights, e.info, 0, e.result);
                  }}});
  };
  const auto both = [&](const char* parameter, const char* found, const char* remedy, int error,
                        void (*spoil)(Edge&)) {
    adjacent(parameter, found, remedy, error, spoil);
    general(parameter, found, remedy, error, spoil);
  };
  const char* const past = beyond_text.c_str();
  const char* const empty = "MPI_WEIGHTS_EMPTY";
  const char* const a_weight = "give a weight for each, or MPI_UNWEIGHTED";
  both("comm_old", no_comm, give_valid, MPI_ERR_COMM, [](Edge& e) { e.comm_old = nobody; });
  both("comm_old", in_groups, "give an intracommunicator", MPI_ERR_COMM,
       [](Edge& e) { e.comm_old = between; });
  adjacent("indegree", "-1", "must not be negative", MPI_ERR_ARG, [](Edge& e) { e.indegree = -1; });
  adjacent("outdegree", "-1", "must not be negative", MPI_ERR_ARG,
           [](Edge& e) { e.outdegree = -1; });
  general("n", "-1", "must not be negative", MPI_ERR_ARG, [](Edge& e) { e.n = -1; });
  general("degrees", null, give_memory, MPI_ERR_ARG, [](Edge& e) { e.degrees = none; });
  general("degrees[0]", "-1", "give 0 edges or more", MPI_ERR_ARG,
          [](Edge& e) { e.degrees = &negative; });
  both("sources", null, give_memory, MPI_ERR_ARG, [](Edge& e) { e.sources = none; });
  both("sources[0]", "-1", "give a rank of", MPI_ERR_RANK, [](Edge& e) { e.sources = &negative; });
  both("sources[0]", past, "give a rank of", MPI_ERR_RANK, [](Edge& e) { e.sources = &beyond; });
  adjacent("destinations", null, give_memory, MPI_ERR_ARG, [](Edge& e) { e.destinations = none; });
  general("destinations", null, "give a rank for each", MPI_ERR_ARG,
          [](Edge& e) { e.destinations = none; });
  both("destinations[0]", "-1", "give a rank of", MPI_ERR_RANK,
       [](Edge& e) { e.destinations = &negative; });
  both("destinations[0]", past, "give a rank of", MPI_ERR_RANK,
       [](Edge& e) { e.destinations = &beyond; });
  adjacent("sourceweights", null, a_weight, MPI_ERR_ARG, [](Edge& e) { e.sourceweights = none; });
  adjacent("sourceweights", empty, a_weight, MPI_ERR_ARG,
           [](Edge& e) { e.sourceweights = MPI_WEIGHTS_EMPTY; });
  adjacent("sourceweights[0]", "-1", "give a weight of 0 or more", MPI_ERR_ARG,
           [](Edge& e) { e.sourceweights = &negative; });
  adjacent("destweights", null, a_weight, MPI_ERR_ARG, [](Edge& e) { e.destweights = none; });
  adjacent("destweights", empty, a_weight, MPI_ERR_ARG,
           [](Edge& e) { e.destweights = MPI_WEIGHTS_EMPTY; });
  adjacent("destweights[0]", "-1", "give a weight of 0 or more", MPI_ERR_ARG,
           [](Edge& e) { e.destweights = &negative; });
  const char* const on_both = "give MPI_UNWEIGHTED for both, or weights";
  adjacent("sourceweights", "MPI_UNWEIGHTED", on_both, MPI_ERR_ARG,
           [](Edge& e) { e.sourceweights = MPI_UNWEIGHTED; });
  adjacent("destweights", "MPI_UNWEIGHTED", on_both, MPI_ERR_ARG,
           [](Edge& e) { e.destweights = MPI_UNWEIGHTED; });
  general("weights", null, a_weight, MPI_ERR_ARG, [](Edge& e) { e.weights = none; });
  general("weights", empty, a_weight, MPI_ERR_ARG, [](Edge& e) { e.weights = MPI_WEIGHTS_EMPTY; });
  general("weights[0]", "-1", "give a weight of 0 or more", MPI_ERR_ARG,
          [](Edge& e) { e.weights = &negative; });
  both("info", freed_text.c_str(), give_valid, MPI_ERR_INFO, [](Edge& e) { e.info = freed_info; });
  both("comm_dist_graph", null, give_memory, MPI_ERR_ARG, [](Edge& e) { e.result = nullptr; });
  text::nothing_lost(world);
}

void asking_distributed_graphs() {
  if (!check::is_macadam()) return;
  static MPI_Comm dist;
  OK(MPI_Dist_graph_create_adjacent(world, 1, &check::rank, &Edge::one, 1, &check::rank, &Edge::one,
                                    MPI_INFO_NULL, 0, &dist));
  text::return_errors(dist);
  const char* const remedy = "make a communicator with MPI_Dist_graph_create";
  all_refused({
      {"MPI_Dist_graph_neighbors_count", "comm", no_comm, give_valid, MPI_ERR_COMM,
       [] { return MPI_Dist_graph_neighbors_count(nobody, &number, &other, &third); }},
      {"MPI_Dist_graph_neighbors_count", "comm", flat_comm, remedy, MPI_ERR_TOPOLOGY,
       [] { return MPI_Dist_graph_neighbors_count(world, &number, &other, &third); }},
      {"MPI_Dist_graph_neighbors_count", "indegree", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Dist_graph_neighbors_count(dist, none, &other, &third); }},
      {"MPI_Dist_graph_neighbors_count", "outdegree", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Dist_graph_neighbors_count(dist, &number, none, &third); }},
      {"MPI_Dist_graph_neighbors_count", "weighted", null, give_memory, MPI_ERR_ARG,
       [] { return MPI_Dist_graph_neighbors_count(dist, &number, &other, none); }},
  });
  struct Room {
    MPI_Comm comm = dist;
    int maxindegree = 1, maxoutdegree = 1;
    int *sources = room, *destinations = room;
    int *sourceweights = MPI_UNWEIGHTED, *destweights = MPI_UNWEIGHTED;
  };
  const auto wrong = [](const char* parameter, const char* found, const char* what_to_do, int error,
                        void (*spoil)(Room&)) {
    Room r;
    spoil(r);
    all_refused({{"MPI_Dist_graph_neighbors", parameter, found, what_to_do, error, [=] {
                    return MPI_Dist_graph_neighbors(r.comm, r.maxindegree, r.sources,
                                                    r.sourceweights, r.maxoutdegree, r.destinations,
                                                    r.destweights);
                  }}});
  };
  wrong("comm", no_comm, give_valid, MPI_ERR_COMM, [](Room& r) { r.comm = nobody; });
  wrong("comm", flat_comm, remedy, MPI_ERR_TOPOLOGY, [](Room& r) { r.comm = world; });
  wrong("maxindegree", "-1", "must not be negative", MPI_ERR_ARG,
        [](Room& r) { r.maxindegree = -1; });
  wrong("sources", null, give_memory, MPI_ERR_ARG, [](Room& r) { r.sources = none; });
  wrong("sourceweights", null, "make room", MPI_ERR_ARG, [](Room& r) { r.sourceweights = none; });
  wrong("sourceweights", "MPI_WEIGHTS_EMPTY", "make room", MPI_ERR_ARG,
        [](Room& r) { r.sourceweights = MPI_WEIGHTS_EMPTY; });
  wrong("maxoutdegree", "-1", "must not be negative", MPI_ERR_ARG,
        [](Room& r) { r.maxoutdegree = -1; });
  wrong("destinations", null, give_memory, MPI_ERR_ARG, [](Room& r) { r.destinations = none; });
  wrong("destweights", null, "make room", MPI_ERR_ARG, [](Room& r) { r.destweights = none; });
  wrong("destweights", "MPI_WEIGHTS_EMPTY", "make room", MPI_ERR_ARG,
        [](Room& r) { r.destweights = MPI_WEIGHTS_EMPTY; });
  text::nothing_lost(dist);
  OK(MPI_Comm_free(&dist));
}

// A topology of another shape is none: each function of one is refused by the two others.
void other_shapes() {
  if (!check::is_macadam()) return;
  static const int flat = 0;
  static MPI_Comm grid, dist, graph, wrong;
  graph = loops();
  OK(MPI_Cart_create(world, 1, &check::size, &flat, 0, &grid));
  OK(MPI_Dist_graph_create_adjacent(world, 0, none, MPI_UNWEIGHTED, 0, none, MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, 0, &dist));
  for (MPI_Comm* comm : {&grid, &dist, &graph}) {
    text::return_errors(*comm);
    OK(MPI_Comm_set_name(*comm, "shaped"));
  }
  struct Shape {
    std::vector<MPI_Comm> others;
    const char *found, *remedy;
    std::vector<std::pair<const char*, int (*)()>> functions;
  };
  for (const auto& [others, found, remedy, functions] : std::vector<Shape>{
           {{graph, dist},
            "communicator shaped, which has no Cartesian topology",
            "make a communicator with MPI_Cart_create first",
            {{"MPI_Cartdim_get", [] { return MPI_Cartdim_get(wrong, &number); }},
             {"MPI_Cart_get", [] { return MPI_Cart_get(wrong, 1, &number, &other, &third); }},
             {"MPI_Cart_rank", [] { return MPI_Cart_rank(wrong, &flat, &number); }},
             {"MPI_Cart_coords", [] { return MPI_Cart_coords(wrong, 0, 1, &number); }},
             {"MPI_Cart_shift", [] { return MPI_Cart_shift(wrong, 0, 1, &number, &other); }},
             {"MPI_Cart_sub", [] { return MPI_Cart_sub(wrong, &flat, &made); }}}},
           {{grid, dist},
            "communicator shaped, which has no graph topology",
            "make a communicator with MPI_Graph_create first",
            {{"MPI_Graphdims_get", [] { return MPI_Graphdims_get(wrong, &number, &other); }},
             {"MPI_Graph_get", [] { return MPI_Graph_get(wrong, 64, 64, room, room); }},
             {"MPI_Graph_neighbors_count",
              [] { return MPI_Graph_neighbors_count(wrong, 0, &number); }},
             {"MPI_Graph_neighbors", [] { return MPI_Graph_neighbors(wrong, 0, 64, room); }}}},
           {{grid, graph},
            "communicator shaped, which has no distributed graph topology",
            "make a communicator with MPI_Dist_graph_create or MPI_Dist_graph_create_adjacent "
            "first",
            {{"MPI_Dist_graph_neighbors_count",
              [] { return MPI_Dist_graph_neighbors_count(wrong, &number, &other, &third); }},
             {"MPI_Dist_graph_neighbors", [] {
                return MPI_Dist_graph_neighbors(wrong, 1, room, MPI_UNWEIGHTED, 1, room,
                                                MPI_UNWEIGHTED);
              }}}}}) {
    for (const MPI_Comm comm : others) {
      wrong = comm;
      for (const auto& [function, call] : functions)
        all_refused({{function, "comm", found, remedy, MPI_ERR_TOPOLOGY, call}});
    }
  }
  for (MPI_Comm* comm : {&grid, &dist, &graph}) {
    text::nothing_lost(*comm);
    OK(MPI_Comm_free(comm));
  }
  if (between != MPI_COMM_NULL) OK(MPI_Comm_free(&between));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"creating_grids", creating_grids},
                     {"asking_grids", asking_grids},
                     {"graphs", graphs},
                     {"distributed_graphs", distributed_graphs},
                     {"asking_distributed_graphs", asking_distributed_graphs},
                     {"other_shapes", other_shapes}});
}
