// SPDX-License-Identifier: BSD-3-Clause
// Who talks to whom in the NAS parallel benchmarks (NPB 2.4), with messages of one size and no
// arithmetic. Process grids and partners follow the benchmarks' sources.
#include "base/error.h"
#include "sim/patterns/pattern.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace macadam::sim {
namespace {

// Exchanges a message with each partner, all at once; partners come in pairs that name each other.
class Exchange {
 public:
  explicit Exchange(Context& context)
      : bytes_(static_cast<int>(context.parameters.number("bytes", 1024))), own_(context.rank),
        out_(static_cast<std::size_t>(bytes_)), in_(out_.size()) {}

  void with(int partner) { between(partner, partner); }
  void between(int to, int from) {
    if (to == own_ && from == own_) return;
    MPI_Sendrecv(out_.data(), bytes_, MPI_BYTE, to, 0, in_.data(), bytes_, MPI_BYTE, from, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

 private:
  int bytes_;
  int own_;
  std::vector<char> out_, in_;
};

void sum(int count = 1) {
  std::vector<double> in(static_cast<std::size_t>(count)), out(in.size());
  MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void spread() {
  int value = 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

int power_of_two(const Context& context, const char* name) {
  if (!std::has_single_bit(static_cast<unsigned>(context.size)))
    base::fail(MPI_ERR_ARG, "{} runs on a power of two of ranks, not on {}", name, context.size);
  return std::countr_zero(static_cast<unsigned>(context.size));
}

// Conjugate gradient: sums along the rows of a grid by recursive halving, then a transposition.
void cg(Context& context) {
  const int log2 = power_of_two(context, "CG");
  const int rows = 1 << (log2 / 2);
  const int columns = 1 << ((log2 + 1) / 2);
  const int row = context.rank / columns, column = context.rank % columns;
  Exchange exchange(context);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int factor = columns; factor > 1; factor /= 2) {
    const int partner = (column + factor / 2) % factor + column / factor * factor;
    exchange.with(row * columns + partner);
  }
  const int me = context.rank;
  exchange.with(columns == rows ? me % rows * rows + me / rows
                                : 2 * (me / 2 % rows * rows + me / 2 / rows) + me % 2);
}

// Multigrid: halos in three dimensions on every level; on coarse ones the neighbours are further
// away, as the ranks between have nothing left.
void mg(Context& context) {
  const int log2 = power_of_two(context, "MG");
  const std::array<int, 3> grid{1 << ((log2 + 2) / 3), 1 << ((log2 + 1) / 3), 1 << (log2 / 3)};
  const std::array<int, 3> at{context.rank % grid[0], context.rank / grid[0] % grid[1],
                              context.rank / (grid[0] * grid[1])};
  const auto rank_at = [&](std::array<int, 3> place) {
    return place[0] + grid[0] * (place[1] + grid[1] * place[2]);
  };
  Exchange exchange(context);
  spread();
  for (int stride = 1; stride < grid[0]; stride *= 2) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (at[0] % stride != 0 || at[1] % stride != 0 || at[2] % stride != 0) continue;
      if (stride >= grid[axis]) continue;
      std::array<int, 3> up = at, down = at;
      up[axis] = (at[axis] + stride) % grid[axis];
      down[axis] = (at[axis] - stride + grid[axis]) % grid[axis];
      exchange.between(rank_at(up), rank_at(down));
      exchange.between(rank_at(down), rank_at(up));
    }
  }
  sum();
  MPI_Barrier(MPI_COMM_WORLD);
}

// Integer sort: everybody has keys for everybody.
void is(Context& context) {
  const std::int64_t bytes = context.parameters.number("bytes", 64);
  const auto block = static_cast<int>(bytes);
  const auto size = static_cast<std::size_t>(context.size);
  std::vector<char> in(size * static_cast<std::size_t>(bytes)), out(in.size());
  std::vector<int> counts(size, block), places(size);
  for (std::size_t i = 0; i < size; ++i)
    places[i] = static_cast<int>(i) * block;
  sum(64);
  std::vector<int> to(size), from(size);
  MPI_Alltoall(to.data(), 1, MPI_INT, from.data(), 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoallv(in.data(), counts.data(), places.data(), MPI_BYTE, out.data(), counts.data(),
                places.data(), MPI_BYTE, MPI_COMM_WORLD);
}

// Embarrassingly parallel: a few sums at the end.
void ep(Context&) {
  MPI_Barrier(MPI_COMM_WORLD);
  sum();
  sum(10);
}

// Scalar and block pentadiagonal solvers: the multipartition of a square of ranks. Each has a
// successor and a predecessor in three directions, of which the third runs along the diagonal.
void multipartition(Context& context) {
  int side = 1;
  while (side * side < context.size)
    ++side;
  if (side * side != context.size)
    base::fail(MPI_ERR_ARG, "SP and BT run on a square of ranks, not on {}", context.size);
  const int i = context.rank % side, j = context.rank / side;
  const auto rank_at = [&](int x, int y) { return (x + side) % side + side * ((y + side) % side); };
  Exchange exchange(context);
  spread();
  for (const auto& [x, y] : {std::pair{1, 0}, {0, 1}, {1, -1}}) {
    exchange.between(rank_at(i + x, j + y), rank_at(i - x, j - y));
    exchange.between(rank_at(i - x, j - y), rank_at(i + x, j + y));
  }
  sum(5);
}

constexpr std::array all = {
    Pattern{"cg", "NAS CG: sums along rows of a grid, a transposition", cg},
    Pattern{"mg", "NAS MG: halos in three dimensions on every level of a multigrid", mg},
    Pattern{"is", "NAS IS: allreduce, alltoall, alltoallv", is},
    Pattern{"sp", "NAS SP: multipartition of a square of ranks", multipartition},
    Pattern{"bt", "NAS BT: the same partners as SP", multipartition},
    Pattern{"ep", "NAS EP: sums at the end", ep},
};

} // namespace

std::span<const Pattern> nas_patterns() {
  return all;
}

} // namespace macadam::sim
