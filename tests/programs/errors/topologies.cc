// SPDX-License-Identifier: BSD-3-Clause
// Every bad argument of the functions of topologies; those of the neighbourhood collectives:
// errors/neighbors.cc.
#include "errors/text.h"

namespace {

using text::Wrong;

const MPI_Comm world = MPI_COMM_WORLD, nobody = MPI_COMM_NULL;
const char* const null = "a null pointer";
const char* const no_comm = "MPI_COMM_NULL";
int* const none = nullptr;
int number, other, third, room[64];
MPI_Comm made = MPI_COMM_NULL;

void all_refused(const std::vector<Wrong>& list) {
  for (const Wrong& wrong : list) {
    made = MPI_COMM_NULL;
    text::refused(wrong);
    CHECK(made == MPI_COMM_NULL);
  }
}

void grids() {
  if (!check::is_macadam()) return; // MPICH 5.0 has other classes, checks less, or crashes
  static const int flat = 0, negative = -1, zero = 0, open[2] = {0, 0}, too_large[] = {1000, 1};
  static MPI_Comm grid;
  OK(MPI_Cart_create(world, 1, &check::size, &flat, 0, &grid));
  text::return_errors(grid);
  static const int beyond = check::size;
  static const std::string beyond_text = std::to_string(beyond);
  all_refused({
      {"MPI_Cart_create", "comm_old", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Cart_create(nobody, 1, &check::size, &flat, 0, &made); }},
      {"MPI_Cart_create", "ndims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, -1, &check::size, &flat, 0, &made); }},
      {"MPI_Cart_create", "dims", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, 1, none, &flat, 0, &made); }},
      {"MPI_Cart_create", "periods", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, 1, &check::size, none, 0, &made); }},
      {"MPI_Cart_create", "dims[0]", "0", "give", MPI_ERR_DIMS,
       [] { return MPI_Cart_create(world, 1, &zero, &flat, 0, &made); }},
      {"MPI_Cart_create", "dims[0] to dims[0]", "1000", "give smaller", MPI_ERR_DIMS,
       [] { return MPI_Cart_create(world, 2, too_large, open, 0, &made); }},
      {"MPI_Cart_create", "comm_cart", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_create(world, 1, &check::size, &flat, 0, nullptr); }},
      {"MPI_Cart_map", "dims[0]", "-1", "give", MPI_ERR_DIMS,
       [] { return MPI_Cart_map(world, 1, &negative, &flat, &number); }},
      {"MPI_Cart_map", "newrank", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_map(world, 1, &check::size, &flat, none); }},
      {"MPI_Cart_map", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Cart_map(nobody, 1, &check::size, &flat, &number); }},
      {"MPI_Cart_coords", "rank", beyond_text.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Cart_coords(grid, beyond, 1, &number); }},
      {"MPI_Cart_coords", "maxdims", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Cart_coords(grid, 0, 0, &number); }},
      {"MPI_Cart_coords", "coords", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_coords(grid, 0, 1, none); }},
      {"MPI_Cart_get", "maxdims", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 0, &number, &other, &third); }},
      {"MPI_Cart_get", "dims", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 1, none, &other, &third); }},
      {"MPI_Cart_get", "periods", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 1, &number, none, &third); }},
      {"MPI_Cart_get", "coords", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_get(grid, 1, &number, &other, none); }},
      {"MPI_Cart_rank", "coords[0]", beyond_text.c_str(), "give", MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, &beyond, &number); }},
      {"MPI_Cart_rank", "coords", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, none, &number); }},
      {"MPI_Cart_rank", "rank", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_rank(grid, &zero, none); }},
      {"MPI_Cart_shift", "direction", "1", "give", MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, 1, 1, &number, &other); }},
      {"MPI_Cart_shift", "direction", "-1", "give", MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, -1, 1, &number, &other); }},
      {"MPI_Cart_shift", "rank_source", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, 0, 1, none, &other); }},
      {"MPI_Cart_shift", "rank_dest", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_shift(grid, 0, 1, &number, none); }},
      {"MPI_Cart_sub", "remain_dims", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_sub(grid, none, &made); }},
      {"MPI_Cart_sub", "newcomm", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cart_sub(grid, &zero, nullptr); }},
      {"MPI_Cartdim_get", "ndims", null, "give", MPI_ERR_ARG,
       [] { return MPI_Cartdim_get(grid, none); }},
      {"MPI_Cartdim_get", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Cartdim_get(nobody, &number); }},
      {"MPI_Topo_test", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Topo_test(nobody, &number); }},
      {"MPI_Topo_test", "status", null, "give", MPI_ERR_ARG,
       [] { return MPI_Topo_test(grid, none); }},
      {"MPI_Dims_create", "ndims", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Dims_create(4, -1, room); }},
      {"MPI_Dims_create", "dims", null, "give", MPI_ERR_ARG,
       [] { return MPI_Dims_create(4, 1, none); }},
      {"MPI_Dims_create", "nnodes", "0", "give", MPI_ERR_DIMS,
       [] {
         room[0] = 0;
         return MPI_Dims_create(0, 1, room);
       }},
      {"MPI_Dims_create", "dims[0]", "-3", "0 where", MPI_ERR_DIMS,
       [] {
         room[0] = -3;
         return MPI_Dims_create(4, 1, room);
       }},
      {"MPI_Dims_create", "nnodes", "4", "give sizes", MPI_ERR_DIMS,
       [] {
         room[0] = 3;
         return MPI_Dims_create(4, 1, room);
       }},
  });
  text::nothing_lost(grid);
  OK(MPI_Comm_free(&grid));
}

void graphs() {
  if (!check::is_macadam()) return;
  static const int zero = 0, one = 1, negative = -1, beyond = check::size;
  static const std::string beyond_text = std::to_string(beyond),
                           more_text = std::to_string(beyond + 1);
  static MPI_Comm graph;
  std::vector<int> index, edges; // each its own neighbour
  for (int i = 0; i < check::size; ++i) {
    index.push_back(i + 1);
    edges.push_back(i);
  }
  OK(MPI_Graph_create(world, check::size, index.data(), edges.data(), 0, &graph));
  text::return_errors(graph);
  static MPI_Comm dist;
  OK(MPI_Dist_graph_create_adjacent(world, 1, &check::rank, &one, 1, &check::rank, &one,
                                    MPI_INFO_NULL, 0, &dist));
  OK(MPI_Comm_set_errhandler(dist, MPI_ERRORS_RETURN));
  const auto adjacent = [](const int* sources, const int* weights) {
    return MPI_Dist_graph_create_adjacent(world, 1, sources, weights, 0, none, MPI_UNWEIGHTED,
                                          MPI_INFO_NULL, 0, &made);
  };
  const auto adjacent_out = [](const int* destinations, const int* weights) {
    return MPI_Dist_graph_create_adjacent(world, 0, none, MPI_UNWEIGHTED, 1, destinations, weights,
                                          MPI_INFO_NULL, 0, &made);
  };
  const auto edge = [](const int* source, const int* degree, const int* destination,
                       const int* weight) {
    return MPI_Dist_graph_create(world, 1, source, degree, destination, weight, MPI_INFO_NULL, 0,
                                 &made);
  };
  all_refused({
      {"MPI_Graph_create", "comm_old", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Graph_create(nobody, 1, &one, &zero, 0, &made); }},
      {"MPI_Graph_create", "nnodes", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return MPI_Graph_create(world, -1, &one, &zero, 0, &made); }},
      {"MPI_Graph_create", "nnodes", more_text.c_str(), "give fewer", MPI_ERR_ARG,
       [] { return MPI_Graph_create(world, beyond + 1, room, &zero, 0, &made); }},
      {"MPI_Graph_create", "index[0]", "-1", "give", MPI_ERR_ARG,
       [] { return MPI_Graph_create(world, 1, &negative, &zero, 0, &made); }},
      {"MPI_Graph_create", "edges[0]", beyond_text.c_str(), "give", MPI_ERR_ARG,
       [] { return MPI_Graph_create(world, 1, &one, &beyond, 0, &made); }},
      {"MPI_Graph_create", "edges", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graph_create(world, 1, &one, none, 0, &made); }},
      {"MPI_Graph_create", "comm_graph", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graph_create(world, 1, &one, &zero, 0, nullptr); }},
      {"MPI_Graph_map", "edges[0]", "-1", "give", MPI_ERR_ARG,
       [] { return MPI_Graph_map(world, 1, &one, &negative, &number); }},
      {"MPI_Graph_map", "newrank", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graph_map(world, 1, &one, &zero, none); }},
      {"MPI_Graphdims_get", "nnodes", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graphdims_get(graph, none, &other); }},
      {"MPI_Graphdims_get", "nedges", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graphdims_get(graph, &number, none); }},
      {"MPI_Graph_get", "maxindex", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 0, 64, room, room); }},
      {"MPI_Graph_get", "maxedges", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 64, 0, room, room); }},
      {"MPI_Graph_get", "edges", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graph_get(graph, 64, 64, room, none); }},
      {"MPI_Graph_neighbors_count", "rank", "-1", "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Graph_neighbors_count(graph, -1, &number); }},
      {"MPI_Graph_neighbors_count", "nneighbors", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors_count(graph, 0, none); }},
      {"MPI_Graph_neighbors", "rank", beyond_text.c_str(), "ranks 0 to", MPI_ERR_RANK,
       [] { return MPI_Graph_neighbors(graph, beyond, 1, room); }},
      {"MPI_Graph_neighbors", "maxneighbors", "0", "make room", MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors(graph, 0, 0, room); }},
      {"MPI_Graph_neighbors", "neighbors", null, "give", MPI_ERR_ARG,
       [] { return MPI_Graph_neighbors(graph, 0, 1, none); }},
      {"MPI_Dist_graph_create_adjacent", "sources", null, "give", MPI_ERR_ARG,
       [=] { return adjacent(none, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create_adjacent", "sources[0]", beyond_text.c_str(), "give", MPI_ERR_RANK,
       [=] { return adjacent(&beyond, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create_adjacent", "sourceweights[0]", "-1", "give", MPI_ERR_ARG,
       [=] { return adjacent(&zero, &negative); }},
      {"MPI_Dist_graph_create_adjacent", "sourceweights", null, "give", MPI_ERR_ARG,
       [=] { return adjacent(&zero, none); }},
      {"MPI_Dist_graph_create_adjacent", "sourceweights", "MPI_WEIGHTS_EMPTY", "give", MPI_ERR_ARG,
       [=] { return adjacent(&zero, MPI_WEIGHTS_EMPTY); }},
      {"MPI_Dist_graph_create_adjacent", "destinations", null, "give", MPI_ERR_ARG,
       [=] { return adjacent_out(none, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create_adjacent", "destinations[0]", "-1", "give", MPI_ERR_RANK,
       [=] { return adjacent_out(&negative, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create_adjacent", "destweights[0]", "-1", "give", MPI_ERR_ARG,
       [=] { return adjacent_out(&zero, &negative); }},
      {"MPI_Dist_graph_create", "sources[0]", "-1", "give", MPI_ERR_RANK,
       [=] { return edge(&negative, &one, &zero, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create", "degrees", null, "give", MPI_ERR_ARG,
       [=] { return edge(&zero, none, &zero, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create", "degrees[0]", "-1", "give", MPI_ERR_ARG,
       [=] { return edge(&zero, &negative, &zero, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create", "destinations", null, "give", MPI_ERR_ARG,
       [=] { return edge(&zero, &one, none, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create", "destinations[0]", beyond_text.c_str(), "give", MPI_ERR_RANK,
       [=] { return edge(&zero, &one, &beyond, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_create", "weights[0]", "-1", "give", MPI_ERR_ARG,
       [=] { return edge(&zero, &one, &zero, &negative); }},
      {"MPI_Dist_graph_neighbors_count", "indegree", null, "give", MPI_ERR_ARG,
       [] { return MPI_Dist_graph_neighbors_count(dist, none, &other, &third); }},
      {"MPI_Dist_graph_neighbors_count", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Dist_graph_neighbors_count(nobody, &number, &other, &third); }},
      {"MPI_Dist_graph_neighbors", "maxindegree", "-1", "must not be negative", MPI_ERR_ARG,
       [] {
         return MPI_Dist_graph_neighbors(dist, -1, room, MPI_UNWEIGHTED, 1, room, MPI_UNWEIGHTED);
       }},
      {"MPI_Dist_graph_neighbors", "sources", null, "give", MPI_ERR_ARG,
       [] {
         return MPI_Dist_graph_neighbors(dist, 1, none, MPI_UNWEIGHTED, 1, room, MPI_UNWEIGHTED);
       }},
      {"MPI_Dist_graph_neighbors", "sourceweights", null, "make room", MPI_ERR_ARG,
       [] { return MPI_Dist_graph_neighbors(dist, 1, room, none, 1, room, MPI_UNWEIGHTED); }},
      {"MPI_Dist_graph_neighbors", "destweights", "MPI_WEIGHTS_EMPTY", "make room", MPI_ERR_ARG,
       [] {
         return MPI_Dist_graph_neighbors(dist, 1, room, MPI_UNWEIGHTED, 1, room, MPI_WEIGHTS_EMPTY);
       }},
  });
  text::nothing_lost(graph);
  text::nothing_lost(dist);
  OK(MPI_Comm_free(&dist));
  OK(MPI_Comm_free(&graph));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"grids", grids}, {"graphs", graphs}});
}
