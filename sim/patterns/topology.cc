// SPDX-License-Identifier: BSD-3-Clause
// Exchanges with the neighbours in a topology, its ranks in the order of the job and reordered:
// what goes between machines?
#include "base/error.h"
#include "sim/device.h"
#include "sim/patterns/pattern.h"
#include "sim/random.h"
#include "sim/rank.h"

#include <mpi.h>

#include <array>
#include <utility>
#include <vector>

namespace macadam::sim {
namespace {

MPI_Comm grid(int ranks, int ndims, int reorder) {
  std::array<int, 3> dims{}, periods{};
  MPI_Dims_create(ranks, ndims, dims.data());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, ndims, dims.data(), periods.data(), reorder, &comm);
  return comm;
}

// Points strewn over a square, each with its four nearest ones: a mesh whose parts were numbered
// without thought.
class Mesh {
 public:
  Mesh(int ranks, std::uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < ranks; ++i) {
      const double x = random.fraction();
      points_.emplace_back(x, random.fraction());
    }
  }
  // Whether either is among the nearest of the other.
  [[nodiscard]] bool joined(int one, int other) const {
    return one != other && (near(one, other) || near(other, one));
  }

 private:
  [[nodiscard]] double distance(int one, int other) const {
    const auto [x, y] = points_[static_cast<std::size_t>(one)];
    const auto [u, v] = points_[static_cast<std::size_t>(other)];
    return (x - u) * (x - u) + (y - v) * (y - v);
  }
  [[nodiscard]] bool near(int one, int other) const {
    int nearer = 0;
    for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
      if (i != one && i != other && distance(one, i) < distance(one, other)) ++nearer;
    }
    return nearer < 4;
  }
  std::vector<std::pair<double, double>> points_;
};

MPI_Comm irregular(const Context& context, const Mesh& mesh, int reorder) {
  std::vector<int> neighbors;
  for (int rank = 0; rank < context.size; ++rank) {
    if (mesh.joined(context.rank, rank)) neighbors.push_back(rank);
  }
  const auto degree = static_cast<int>(neighbors.size());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, neighbors.data(), MPI_UNWEIGHTED, degree,
                                 neighbors.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &comm);
  return comm;
}

int degree_of(MPI_Comm comm) {
  int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0;
  MPI_Topo_test(comm, &kind);
  if (kind == MPI_CART) {
    MPI_Cartdim_get(comm, &in);
    return 2 * in;
  }
  MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  return in;
}

void exchange(Context& context, MPI_Comm comm, int bytes, std::int64_t rounds, const char* what) {
  const auto all = static_cast<std::size_t>(degree_of(comm)) * static_cast<std::size_t>(bytes);
  std::vector<char> out(all), in(all);
  MPI_Barrier(comm);
  const FabricCounters& counters = Rank::current()->device()->fabric().counters;
  const auto before = static_cast<double>(counters.bytes_between_nodes);
  const double start = MPI_Wtime();
  for (std::int64_t round = 0; round < rounds; ++round)
    MPI_Neighbor_alltoall(out.data(), bytes, MPI_BYTE, in.data(), bytes, MPI_BYTE, comm);
  MPI_Barrier(comm);
  const double each = (MPI_Wtime() - start) / static_cast<double>(rounds);
  const double between =
      (static_cast<double>(counters.bytes_between_nodes) - before) / static_cast<double>(rounds);
  if (context.rank == 0)
    context.rows.push_back({what, {{"bytes_between_nodes", between}, {"exchange_us", each * 1e6}}});
}

void neighbors(Context& context) {
  const auto bytes = static_cast<int>(context.parameters.number("bytes", 64 << 10));
  const std::int64_t rounds = context.parameters.number("rounds", 4);
  const auto seed = static_cast<std::uint64_t>(context.parameters.number("mesh", 1));
  const std::string shape = context.parameters.text("shape", "2d");
  if (shape != "2d" && shape != "3d" && shape != "irregular")
    base::fail(MPI_ERR_ARG, "parameter shape: found '{}', needed 2d, 3d or irregular", shape);
  for (const int reorder : {0, 1}) {
    MPI_Comm comm = shape == "irregular" ? irregular(context, Mesh(context.size, seed), reorder)
                                         : grid(context.size, shape == "2d" ? 2 : 3, reorder);
    exchange(context, comm, bytes, rounds, reorder != 0 ? "reordered" : "in the job's order");
    MPI_Comm_free(&comm);
  }
}

constexpr std::array all = {
    Pattern{"neighbors",
            "MPI_Neighbor_alltoall in a topology, without and with reordering: give "
            "--ranks-per-node (shape=2d, 3d, irregular; bytes, rounds, mesh)",
            neighbors},
};

} // namespace

std::span<const Pattern> topology_patterns() {
  return all;
}

} // namespace macadam::sim
