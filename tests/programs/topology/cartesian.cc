// SPDX-License-Identifier: BSD-3-Clause
// Cartesian topologies and balanced dimensions.
#include "check.h"

#include <climits>
#include <numeric>

namespace {

// A grid of all ranks in `ndims` dimensions, each periodic as `periodic` says in turn.
struct Grid {
  std::vector<int> dims, periods;
  MPI_Comm comm = MPI_COMM_NULL;

  Grid(int ndims, std::vector<int> periodic, int reorder = 0)
      : dims(static_cast<std::size_t>(ndims)) {
    for (std::size_t i = 0; i < dims.size(); ++i)
      periods.push_back(periodic[i % periodic.size()]);
    OK(MPI_Dims_create(check::size, ndims, dims.data()));
    OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims.data(), periods.data(), reorder, &comm));
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;
  ~Grid() { OK(MPI_Comm_free(&comm)); }
  int ndims() const { return static_cast<int>(dims.size()); }
};

int product(const std::vector<int>& dims) {
  return std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>());
}

void dims_found() {
  struct Case {
    int nodes;
    std::vector<int> given, found;
  };
  for (const auto& [nodes, given, found] :
       std::vector<Case>{{6, {0, 0}, {3, 2}},
                         {7, {0, 0}, {7, 1}},
                         {6, {0, 3, 0}, {2, 3, 1}},
                         {12, {0, 0, 0}, {3, 2, 2}},
                         {16, {0, 0}, {4, 4}},
                         {48, {0, 0, 0}, {4, 4, 3}},
                         {1, {0, 0, 0}, {1, 1, 1}},
                         {1, {}, {}},
                         {12, {3, 4}, {3, 4}},
                         {2147483647, {0, 0}, {2147483647, 1}},
                         {1 << 30, {0, 0, 0}, {1 << 10, 1 << 10, 1 << 10}},
                         {2095133040, std::vector<int>(3), {1292, 1287, 1260}}}) {
    if (nodes > 1 << 20 && !check::is_macadam()) continue; // MPICH 5.0 crashes
    std::vector<int> dims = given;
    OK(MPI_Dims_create(nodes, static_cast<int>(dims.size()), dims.data()));
    CHECK_EQUAL(product(dims), dims.empty() ? 1 : nodes);
    for (std::size_t i = 0; i < dims.size(); ++i)
      CHECK_EQUAL(dims[i], found[i]);
  }
}

void dims_refused() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const auto fails = [](int nodes, std::vector<int> dims) {
    const std::vector<int> before = dims;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(nodes, static_cast<int>(dims.size()), dims.data()));
    CHECK(dims == before);
  };
  fails(7, {0, 3, 0});
  fails(12, {3, 3});
  fails(12, {0, -1});
  if (check::is_macadam()) fails(0, {0, 0});
}

void positions_and_ranks() {
  for (int ndims = 1; ndims <= 4; ++ndims) {
    const Grid grid(ndims, {1, 0});
    int status = 0, n = 0;
    OK(MPI_Topo_test(grid.comm, &status));
    CHECK_EQUAL(status, MPI_CART);
    OK(MPI_Cartdim_get(grid.comm, &n));
    CHECK_EQUAL(n, ndims);
    const auto room = static_cast<std::size_t>(ndims);
    std::vector<int> dims(room), periods(room), mine(room), coords(room);
    OK(MPI_Cart_get(grid.comm, ndims, dims.data(), periods.data(), mine.data()));
    CHECK(dims == grid.dims);
    CHECK(periods == grid.periods);
    for (int rank = 0; rank < check::size; ++rank) {
      int found = -1;
      OK(MPI_Cart_coords(grid.comm, rank, ndims, coords.data()));
      OK(MPI_Cart_rank(grid.comm, coords.data(), &found));
      CHECK_EQUAL(found, rank);
      if (rank == check::rank) CHECK(coords == mine);
      // A periodic dimension goes on at its other end.
      coords[0] -= 3 * dims[0];
      OK(MPI_Cart_rank(grid.comm, coords.data(), &found));
      CHECK_EQUAL(found, rank);
    }
  }
}

void last_coordinate_runs_fastest() {
  const Grid grid(2, {0});
  int coords[2] = {-1, -1};
  OK(MPI_Cart_coords(grid.comm, check::rank, 2, coords));
  CHECK_EQUAL(coords[0], check::rank / grid.dims[1]);
  CHECK_EQUAL(coords[1], check::rank % grid.dims[1]);
}

void shifts() {
  for (const int periodic : {0, 1}) {
    const Grid grid(1, {periodic});
    for (const int by : {0, 1, -1, 2, check::size, -check::size - 1, INT_MAX, INT_MIN}) {
      int source = -5, dest = -5;
      OK(MPI_Cart_shift(grid.comm, 0, by, &source, &dest));
      const auto at = [&](std::int64_t place) {
        const std::int64_t n = check::size;
        if (place >= 0 && place < n) return static_cast<int>(place);
        return periodic != 0 ? static_cast<int>((place % n + n) % n) : MPI_PROC_NULL;
      };
      CHECK_EQUAL(dest, at(std::int64_t{check::rank} + by));
      CHECK_EQUAL(source, at(std::int64_t{check::rank} - by));
    }
  }
}

// A row of the grid, then a part without dimensions.
void parts() {
  const Grid grid(2, {1, 0});
  MPI_Comm row = MPI_COMM_NULL, point = MPI_COMM_NULL;
  const int keep_last[] = {0, 1}, keep_none[] = {0, 0};
  OK(MPI_Cart_sub(grid.comm, keep_last, &row));
  int size = 0, rank = -1, n = -1, dim = 0, period = -1, coord = -1;
  OK(MPI_Comm_size(row, &size));
  OK(MPI_Comm_rank(row, &rank));
  CHECK_EQUAL(size, grid.dims[1]);
  CHECK_EQUAL(rank, check::rank % grid.dims[1]);
  OK(MPI_Cartdim_get(row, &n));
  CHECK_EQUAL(n, 1);
  OK(MPI_Cart_get(row, 1, &dim, &period, &coord));
  CHECK_EQUAL(dim, grid.dims[1]);
  CHECK_EQUAL(period, 0);
  CHECK_EQUAL(coord, rank);
  int first = check::rank;
  OK(MPI_Bcast(&first, 1, MPI_INT, 0, row));
  CHECK_EQUAL(first, check::rank / grid.dims[1] * grid.dims[1]);

  OK(MPI_Cart_sub(grid.comm, keep_none, &point));
  OK(MPI_Comm_size(point, &size));
  CHECK_EQUAL(size, 1);
  OK(MPI_Cartdim_get(point, &n));
  CHECK_EQUAL(n, 0);
  int unused = 7, zero = -1;
  OK(MPI_Cart_get(point, 0, &unused, &unused, &unused));
  OK(MPI_Cart_rank(point, &unused, &zero));
  CHECK_EQUAL(zero, 0);
  OK(MPI_Comm_free(&row));
  OK(MPI_Comm_free(&point));
}

// Ranks for which there is no place get MPI_COMM_NULL; a grid without dimensions has one place.
void fewer_places_than_ranks() {
  const int dims[] = {check::size > 1 ? check::size - 1 : 1}, periods[] = {1};
  MPI_Comm comm = MPI_COMM_SELF;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &comm));
  CHECK_EQUAL(comm == MPI_COMM_NULL, check::rank >= dims[0]);
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
  int place = -7;
  OK(MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &place));
  CHECK_EQUAL(place, check::rank < dims[0] ? check::rank : MPI_UNDEFINED);
  OK(MPI_Cart_create(MPI_COMM_WORLD, 0, dims, periods, 0, &comm));
  CHECK_EQUAL(comm == MPI_COMM_NULL, check::rank > 0);
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
}

// Duplicates keep the topology, other communicators have none; attributes are not copied.
void kept_by_duplicates() {
  const Grid grid(2, {1});
  MPI_Comm copies[4];
  MPI_Request requests[2];
  OK(MPI_Comm_dup(grid.comm, &copies[0]));
  OK(MPI_Comm_dup_with_info(grid.comm, MPI_INFO_NULL, &copies[1]));
  OK(MPI_Comm_idup(grid.comm, &copies[2], &requests[0]));
  OK(MPI_Comm_idup_with_info(grid.comm, MPI_INFO_NULL, &copies[3], &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  for (MPI_Comm& copy : copies) {
    int status = 0, source = -1, dest = -1, from = -1, to = -1;
    OK(MPI_Topo_test(copy, &status));
    CHECK_EQUAL(status, MPI_CART);
    OK(MPI_Cart_shift(grid.comm, 0, 1, &from, &to));
    OK(MPI_Cart_shift(copy, 0, 1, &source, &dest));
    CHECK_EQUAL(source, from);
    CHECK_EQUAL(dest, to);
    OK(MPI_Comm_free(&copy));
  }
  MPI_Comm other = MPI_COMM_NULL;
  OK(MPI_Comm_split(grid.comm, 0, 0, &other));
  int status = 0;
  OK(MPI_Topo_test(other, &status));
  CHECK_EQUAL(status, MPI_UNDEFINED);
  OK(MPI_Comm_free(&other));
}

void refused() {
  if (!check::is_macadam()) return; // MPICH 5.0 has other classes, checks less, or crashes
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Comm comm = MPI_COMM_NULL;
  const int too_large[] = {check::size, 2}, bad[] = {0}, periods[] = {0, 0};
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 2, too_large, periods, 0, &comm));
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, bad, periods, 0, &comm));
  FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, -1, bad, periods, 0, &comm));
  FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 1, nullptr, periods, 0, &comm));
  FAILS(MPI_ERR_COMM, MPI_Cart_create(MPI_COMM_NULL, 1, bad, periods, 0, &comm));
  int a = 0, b = 0, c = 0;
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &a));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_shift(MPI_COMM_WORLD, 0, 1, &a, &b));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(MPI_COMM_WORLD, &a, &b));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &a, &b, &c));

  const Grid grid(1, {0});
  OK(MPI_Comm_set_errhandler(grid.comm, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(grid.comm, &a, &b));
  FAILS(MPI_ERR_ARG, MPI_Cart_shift(grid.comm, 1, 1, &a, &b));
  FAILS(MPI_ERR_ARG, MPI_Cart_shift(grid.comm, -1, 1, &a, &b));
  FAILS(MPI_ERR_RANK, MPI_Cart_coords(grid.comm, check::size, 1, &a));
  FAILS(MPI_ERR_ARG, MPI_Cart_coords(grid.comm, 0, 0, &a));
  a = check::size;
  FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid.comm, &a, &b));
  FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid.comm, nullptr, &b));
  a = -1;
  FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid.comm, &a, &b));
  FAILS(MPI_ERR_RANK, MPI_Cart_coords(grid.comm, -1, 1, &a));
  FAILS(MPI_ERR_ARG, MPI_Cart_get(grid.comm, 0, &a, &b, &c));
  FAILS(MPI_ERR_ARG, MPI_Cart_sub(grid.comm, nullptr, &comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_sub(MPI_COMM_WORLD, periods, &comm));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_get(MPI_COMM_WORLD, 1, &a, &b, &c));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_coords(MPI_COMM_WORLD, 0, 1, &a));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_rank(MPI_COMM_WORLD, &c, &b));
  FAILS(MPI_ERR_DIMS, MPI_Cart_map(MPI_COMM_WORLD, 1, bad, periods, &a));
  FAILS(MPI_ERR_COMM, MPI_Topo_test(MPI_COMM_NULL, &a));
  FAILS(MPI_ERR_ARG, MPI_Topo_test(grid.comm, nullptr));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"dims_found", dims_found},
                     {"dims_refused", dims_refused},
                     {"positions_and_ranks", positions_and_ranks},
                     {"last_coordinate_runs_fastest", last_coordinate_runs_fastest},
                     {"shifts", shifts},
                     {"parts", parts},
                     {"fewer_places_than_ranks", fewer_places_than_ranks},
                     {"kept_by_duplicates", kept_by_duplicates},
                     {"refused", refused}});
}
