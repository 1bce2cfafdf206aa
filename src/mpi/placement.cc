// SPDX-License-Identifier: BSD-3-Clause
// Both ways to place vertices make an order of them in which neighbours follow each other; the
// machines are then filled in that order.
#include "mpi/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

namespace macadam::mpi {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

// --- Blocks of a grid ----------------------------------------------------------------------------

// The block of `cells` cells that divides the grid with the fewest cut edges.
class BestBlock {
 public:
  BestBlock(const std::vector<Grid::Dimension>& grid, int cells) : grid_(grid) {
    try_from(0, cells);
  }
  // Its size in each dimension; empty if there is no such block.
  std::vector<int> best;

 private:
  void try_from(std::size_t dimension, int cells) {
    if (dimension == grid_.size()) {
      if (cells == 1) judge();
      return;
    }
    for (int size = 1; size <= std::min(cells, grid_[dimension].size); ++size) {
      if (cells % size != 0 || grid_[dimension].size % size != 0) continue;
      block_.push_back(size);
      try_from(dimension + 1, cells / size);
      block_.pop_back();
    }
  }
  void judge() {
    // Relative to the whole grid: a plane through it cuts a part of 1 / size of all cells' edges.
    double cut = 0;
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const auto [size, periodic] = grid_[i];
      const int blocks = size / block_[i];
      cut += static_cast<double>(periodic && blocks > 1 ? blocks : blocks - 1) / size;
    }
    if (cut >= least_) return;
    least_ = cut;
    best = block_;
  }

  const std::vector<Grid::Dimension>& grid_;
  std::vector<int> block_;
  double least_ = std::numeric_limits<double>::max();
};

// Counts `digits` up, the last one fastest; false when it has come round to zeros.
bool next(std::vector<int>& digits, const std::vector<int>& ends) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (++digits[i] < ends[i]) return true;
    digits[i] = 0;
  }
  return false;
}

// The cells of a grid block by block; empty if it cannot be cut into blocks of that many cells.
std::vector<int> order_by_blocks(const std::vector<Grid::Dimension>& grid, int cells) {
  const std::vector<int> block = BestBlock(grid, cells).best;
  if (block.empty()) return {};
  std::vector<int> blocks(grid.size()), corner(grid.size()), inside(grid.size()), order;
  for (std::size_t i = 0; i < grid.size(); ++i)
    blocks[i] = grid[i].size / block[i];
  do {
    do {
      int cell = 0;
      for (std::size_t i = 0; i < grid.size(); ++i)
        cell = cell * grid[i].size + corner[i] * block[i] + inside[i];
      order.push_back(cell);
    } while (next(inside, block));
  } while (next(corner, blocks));
  return order;
}

// --- Growth --------------------------------------------------------------------------------------

// Fills one machine after the other: from a vertex that has the fewest free neighbours, always the
// vertex that talks most to those on the machine already.
class Growth {
 public:
  Growth(const Traffic& traffic, const std::vector<int>& capacities) : traffic_(traffic) {
    for (int vertex = 0; vertex < traffic.vertices(); ++vertex)
      free_.push_back(sum(vertex));
    taken_.resize(free_.size());
    for (const int capacity : capacities)
      fill(capacity);
  }
  std::vector<int> order;

 private:
  // Traffic with the machine that is filled, less traffic with vertices still free.
  using Candidate = std::tuple<std::int64_t, std::int64_t, int>;

  [[nodiscard]] std::int64_t sum(int vertex) const {
    std::int64_t total = 0;
    for (const Traffic::Edge& edge : traffic_.of(vertex))
      total += edge.weight;
    return total;
  }
  void fill(int capacity) {
    std::vector<std::int64_t> near(free_.size());
    std::priority_queue<Candidate> candidates;
    for (int filled = 0; filled < capacity; ++filled) {
      int chosen = -1;
      while (chosen < 0 && !candidates.empty()) {
        const auto [gain, lost, negative] = candidates.top();
        candidates.pop();
        if (!taken_[at(-negative)] && near[at(-negative)] == gain) chosen = -negative;
      }
      if (chosen < 0) chosen = seed();
      taken_[at(chosen)] = true;
      order.push_back(chosen);
      for (const auto& [to, weight] : traffic_.of(chosen)) {
        if (taken_[at(to)]) continue;
        free_[at(to)] -= weight;
        near[at(to)] += weight;
        candidates.emplace(near[at(to)], -free_[at(to)], -to);
      }
    }
  }
  [[nodiscard]] int seed() const {
    int best = -1;
    for (int vertex = 0; vertex < traffic_.vertices(); ++vertex) {
      if (!taken_[at(vertex)] && (best < 0 || free_[at(vertex)] < free_[at(best)])) best = vertex;
    }
    return best;
  }

  const Traffic& traffic_;
  std::vector<std::int64_t> free_; // traffic with free vertices
  std::vector<bool> taken_;
};

} // namespace

void Traffic::add(int one, int other, std::int64_t weight) {
  if (one == other) return;
  edges_[at(one)].push_back({other, weight});
  edges_[at(other)].push_back({one, weight});
}

Traffic grid_traffic(const std::vector<Grid::Dimension>& grid) {
  int cells = 1;
  for (const auto& dimension : grid)
    cells *= dimension.size;
  Traffic traffic(cells);
  int stride = 1;
  for (std::size_t i = grid.size(); i-- > 0; stride *= grid[i].size) {
    for (int cell = 0; cell < cells; ++cell) {
      const int coordinate = cell / stride % grid[i].size;
      if (coordinate + 1 < grid[i].size)
        traffic.add(cell, cell + stride, 1);
      else if (grid[i].periodic)
        traffic.add(cell, cell - coordinate * stride, 1);
    }
  }
  return traffic;
}

std::int64_t traffic_between(const Traffic& traffic, const std::vector<int>& machines,
                             const std::vector<int>& rank_of) {
  const auto machine = [&](int vertex) { return machines[at(rank_of[at(vertex)])]; };
  std::int64_t total = 0;
  for (int vertex = 0; vertex < traffic.vertices(); ++vertex) {
    for (const auto& [to, weight] : traffic.of(vertex)) {
      if (vertex < to && machine(vertex) != machine(to)) total += weight;
    }
  }
  return total;
}

std::vector<int> place(const Traffic& traffic, const std::vector<int>& machines,
                       const std::vector<Grid::Dimension>& grid) {
  // The ranks machine by machine, and how many each has.
  std::vector<int> ranks(machines.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> best = ranks;
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return machines[at(rank)]; });
  std::vector<int> capacities;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 0 || machines[at(ranks[i])] != machines[at(ranks[i - 1])]) capacities.push_back(0);
    ++capacities.back();
  }
  if (capacities.size() < 2) return best;

  std::int64_t least = traffic_between(traffic, machines, best);
  const auto consider = [&](const std::vector<int>& order) {
    if (order.empty()) return;
    std::vector<int> rank_of(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      rank_of[at(order[i])] = ranks[i];
    const std::int64_t between = traffic_between(traffic, machines, rank_of);
    if (between >= least) return;
    least = between;
    best = std::move(rank_of);
  };
  const bool even = std::ranges::all_of(capacities, [&](int c) { return c == capacities[0]; });
  if (!grid.empty() && even) consider(order_by_blocks(grid, capacities[0]));
  consider(Growth(traffic, capacities).order);
  return best;
}

} // namespace macadam::mpi
