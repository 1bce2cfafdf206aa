// SPDX-License-Identifier: BSD-3-Clause
// Cartesian topologies.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/comm_create.h"
#include "mpi/process.h"
#include "mpi/topology.h"
#include "mpi/topology_create.h"

#include <cstdint>

namespace macadam::mpi {
namespace {

using Dimensions = std::vector<Grid::Dimension>;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

// A grid that has a rank for every cell.
Dimensions checked(const Communicator& comm, int ndims, const int dims[], const int periods[]) {
  Dimensions dimensions;
  std::int64_t cells = 1;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] < 1) {
      base::fail(MPI_ERR_DIMS,
                 "dims[{}] is {}; give 1 position or more, or let MPI_Dims_create find sizes", i,
                 dims[i]);
    }
    cells *= dims[i];
    if (cells > comm.size()) {
      base::fail(MPI_ERR_DIMS,
                 "the product of dims[0] to dims[{}] is {}, but {} has {} ranks; a grid needs a "
                 "rank for every position: give smaller dims, or start more ranks",
                 i, cells, describe(comm), comm.size());
    }
    dimensions.push_back({dims[i], periods[i] != 0});
  }
  return dimensions;
}

// "3 x 4, periods 0 1"
std::string list_of(const Dimensions& dimensions) {
  std::string sizes, periods;
  for (const auto& dimension : dimensions) {
    sizes += fmt::format("{}{}", sizes.empty() ? "" : " x ", dimension.size);
    periods += dimension.periodic ? " 1" : " 0";
  }
  return sizes + ", periods" + periods;
}

int cells(const Dimensions& dimensions) {
  int product = 1;
  for (const auto& dimension : dimensions)
    product *= dimension.size;
  return product;
}

// Which rank of `comm` takes each cell.
std::vector<int> ranks_of_cells(Process& self, const Communicator& comm, bool reorder,
                                const Dimensions& dimensions) {
  return ranks_of_vertices(
      self, comm, cells(dimensions), reorder, [&] { return grid_traffic(dimensions); }, dimensions);
}

void check_room(int maxdims, const Grid& grid) {
  if (maxdims < static_cast<int>(grid.dimensions.size())) {
    base::fail(MPI_ERR_ARG,
               "maxdims is {}, but the grid has {} dimensions; make room for as many as "
               "MPI_Cartdim_get tells",
               maxdims, grid.dimensions.size());
  }
}

} // namespace

void cart_create(Process& self, Communicator& comm_old, int ndims, const int dims[],
                 const int periods[], int reorder, MPI_Comm* comm_cart) {
  check_intra(comm_old, "comm_old");
  Dimensions dimensions = checked(comm_old, ndims, dims, periods);
  if (self.settings.check) compare_calls(self, comm_old, list_of(dimensions).c_str());
  const std::vector<int> ranks = ranks_of_cells(self, comm_old, reorder != 0, dimensions);
  *comm_cart = with_topology(take_vertices(self, comm_old, ranks),
                             [&](int rank) { return grid_topology(std::move(dimensions), rank); });
}

void cart_map(Process& self, Communicator& comm, int ndims, const int dims[], const int periods[],
              int* newrank) {
  check_intra(comm, "comm");
  const Dimensions dimensions = checked(comm, ndims, dims, periods);
  *newrank = vertex_of(comm, ranks_of_cells(self, comm, true, dimensions));
}

void cart_sub(Process& self, Communicator& comm, const int remain_dims[], MPI_Comm* newcomm) {
  const Grid& whole = grid(comm);
  Dimensions kept;
  int color = 0, key = 0; // the position in the dimensions that go, and in those that stay
  for (std::size_t i = 0; i < whole.dimensions.size(); ++i) {
    const Grid::Dimension& dimension = whole.dimensions[i];
    int& index = remain_dims[i] != 0 ? key : color;
    index = index * dimension.size + whole.position[i];
    if (remain_dims[i] != 0) kept.push_back(dimension);
  }
  *newcomm = with_topology(split(self, comm, color, key),
                           [&](int rank) { return grid_topology(std::move(kept), rank); });
}

void cartdim_get(Process&, Communicator& comm, int* ndims) {
  *ndims = static_cast<int>(grid(comm).dimensions.size());
}

void cart_get(Process&, Communicator& comm, int maxdims, int dims[], int periods[], int coords[]) {
  const Grid& g = grid(comm);
  check_room(maxdims, g);
  for (std::size_t i = 0; i < g.dimensions.size(); ++i) {
    dims[i] = g.dimensions[i].size;
    periods[i] = g.dimensions[i].periodic ? 1 : 0;
    coords[i] = g.position[i];
  }
}

void cart_coords(Process&, Communicator& comm, int rank, int maxdims, int coords[]) {
  const Grid& g = grid(comm);
  check_room(maxdims, g);
  const std::vector<int> found = g.coordinates(rank);
  std::copy(found.begin(), found.end(), coords);
}

void cart_rank(Process&, Communicator& comm, const int coords[], int* rank) {
  const Grid& g = grid(comm);
  std::vector<int> inside;
  for (std::size_t i = 0; i < g.dimensions.size(); ++i) {
    const auto [size, periodic] = g.dimensions[i];
    if (!periodic && (coords[i] < 0 || coords[i] >= size)) {
      base::fail(MPI_ERR_ARG,
                 "coords[{}] is {}; that dimension is not periodic: give a position from 0 to {}",
                 i, coords[i], size - 1);
    }
    inside.push_back((coords[i] % size + size) % size);
  }
  *rank = g.rank_at(inside);
}

void cart_shift(Process&, Communicator& comm, int direction, int disp, int* rank_source,
                int* rank_dest) {
  const Grid& g = grid(comm);
  if (direction < 0 || direction >= static_cast<int>(g.dimensions.size())) {
    base::fail(MPI_ERR_ARG,
               "direction is {}; the grid has {} dimensions: give the number of one, from 0 on",
               direction, g.dimensions.size());
  }
  *rank_source = g.neighbor(at(direction), -std::int64_t{disp});
  *rank_dest = g.neighbor(at(direction), disp);
}

} // namespace macadam::mpi
