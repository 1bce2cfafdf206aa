// SPDX-License-Identifier: BSD-3-Clause
// The array constructors: a part of an array of several dimensions, built up dimension by dimension
// from the fastest. After each step the type spans one full line of the array in that dimension.
#include "datatype/constructors.h"

#include "base/error.h"
#include "datatype/contents_builder.h"
#include "datatype/wide.h"

#include <vector>

namespace macadam::datatype {
namespace {

// Some elements of a line of `size` elements: `parts` of it, spanning the line.
TypeRef line(std::vector<Part> parts, MPI_Count size, const Type& element) {
  const Type::Bounds bounds{0, narrow(Wide{size} * element.extent(), "extent")};
  return Type::make(MPI_COMBINER_RESIZED, {}, {.parts = std::move(parts)}, &bounds);
}

// The position of the i-th fastest dimension among `dimensions`.
std::size_t fastest(std::size_t i, std::size_t dimensions, int order) {
  return order == MPI_ORDER_C ? dimensions - 1 - i : i;
}

void check_order(int order) {
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) {
    base::fail(MPI_ERR_ARG, "order is {}, needed: MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
  }
}

void check_dimensions(std::size_t dimensions) {
  if (dimensions == 0) base::fail(MPI_ERR_ARG, "ndims is 0, needed: 1 or more");
}

void check_subarray(Counts sizes, Counts subsizes, Counts starts) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) {
      base::fail(MPI_ERR_ARG, "size of dimension {} is {}, needed: 1 or more", i, sizes[i]);
    }
    if (subsizes[i] < 1 || subsizes[i] > sizes[i]) {
      base::fail(MPI_ERR_ARG, "subsize of dimension {} is {}, needed: 1 to the array's size {}", i,
                 subsizes[i], sizes[i]);
    }
    if (starts[i] < 0 || starts[i] > sizes[i] - subsizes[i]) {
      base::fail(MPI_ERR_ARG,
                 "start of dimension {} is {}, needed: 0 to {}, so that {} elements fit in {}", i,
                 starts[i], sizes[i] - subsizes[i], subsizes[i], sizes[i]);
    }
  }
}

// How one dimension of a distributed array is dealt out: blocks of `block`, in turn to each of
// `processes`, of which this is number `process`.
struct Deal {
  MPI_Count size;
  MPI_Count block;
  MPI_Count processes;
  MPI_Count process;
};

// The elements of a line that fall to the process.
TypeRef dealt(const Deal& deal, const Type& element) {
  const Wide extent = element.extent();
  const Wide round = Wide{deal.block} * deal.processes;
  const Wide first = Wide{deal.block} * deal.process;
  std::vector<Part> parts;
  if (first < deal.size) {
    // Rounds in which the whole block lies inside the line, then perhaps a cut block.
    const auto full = first + deal.block <= deal.size
                          ? static_cast<MPI_Count>((deal.size - first - deal.block) / round) + 1
                          : 0;
    if (full > 0) {
      const MPI_Count stride = full > 1 ? narrow(round * extent, "stride") : 0;
      parts.push_back(
          {narrow(first * extent, "displacement"), 1, hvector(full, deal.block, stride, element)});
    }
    const Wide cut = first + full * round;
    if (cut < deal.size) {
      parts.push_back({narrow(cut * extent, "displacement"),
                       static_cast<MPI_Count>(deal.size - cut), TypeRef(element)});
    }
  }
  return line(std::move(parts), deal.size, element);
}

// Block size of a dimension from the kind of distribution and its argument.
Deal deal(const Distribution& d, std::size_t i, MPI_Count process) {
  const MPI_Count size = d.global_sizes[i];
  const MPI_Count processes = d.grid[i];
  const int argument = d.arguments[i];
  const bool by_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (!by_default && argument < 1 && d.distributions[i] != MPI_DISTRIBUTE_NONE) {
    base::fail(MPI_ERR_ARG,
               "distribution argument of dimension {} is {}, needed: 1 or more, or "
               "MPI_DISTRIBUTE_DFLT_DARG",
               i, argument);
  }
  switch (d.distributions[i]) {
  case MPI_DISTRIBUTE_BLOCK: {
    const MPI_Count block = by_default ? (size - 1) / processes + 1 : argument;
    if (Wide{block} * processes < size) {
      base::fail(MPI_ERR_ARG,
                 "dimension {}: {} processes with blocks of {} hold less than its {} elements; "
                 "needed: a block size of at least {}",
                 i, processes, block, size, (size - 1) / processes + 1);
    }
    return {size, block, processes, process};
  }
  case MPI_DISTRIBUTE_CYCLIC:
    return {size, by_default ? 1 : argument, processes, process};
  case MPI_DISTRIBUTE_NONE:
    if (processes != 1) {
      base::fail(
          MPI_ERR_ARG,
          "dimension {} is not distributed (MPI_DISTRIBUTE_NONE) but the process grid has {} "
          "processes in it, needed: 1",
          i, processes);
    }
    return {size, size, 1, 0};
  default:
    base::fail(MPI_ERR_ARG,
               "distribution of dimension {} is {}, needed: MPI_DISTRIBUTE_BLOCK, "
               "MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE",
               i, d.distributions[i]);
  }
}

void check_grid(const Distribution& d) {
  if (d.size < 1) base::fail(MPI_ERR_ARG, "size is {}, needed: 1 or more", d.size);
  if (d.rank < 0 || d.rank >= d.size) {
    base::fail(MPI_ERR_ARG, "rank is {}, needed: 0 to {}", d.rank, d.size - 1);
  }
  Wide processes = 1;
  for (std::size_t i = 0; i < d.grid.size(); ++i) {
    if (d.grid[i] < 1) {
      base::fail(MPI_ERR_ARG, "process grid of dimension {} is {}, needed: 1 or more", i,
                 d.grid[i]);
    }
    if (d.global_sizes[i] < 1) {
      base::fail(MPI_ERR_ARG, "global size of dimension {} is {}, needed: 1 or more", i,
                 d.global_sizes[i]);
    }
    processes *= d.grid[i];
    if (processes > d.size) break; // before it can overflow
  }
  if (processes != d.size) {
    base::fail(MPI_ERR_ARG,
               "the process grid does not have {} processes, which size says; the "
               "product of its dimensions must be the size",
               d.size);
  }
}

// The process's place in the grid, which is numbered in C order whatever the order of the array.
std::vector<MPI_Count> place_in_grid(const Distribution& d) {
  std::vector<MPI_Count> place(d.grid.size());
  int rest = d.rank;
  for (std::size_t i = place.size(); i-- > 0;) {
    place[i] = rest % d.grid[i];
    rest /= d.grid[i];
  }
  return place;
}

// The whole array as one type of the given combiner.
TypeRef finished(int combiner, Contents contents, TypeRef array) {
  return Type::make(combiner, std::move(contents), {.parts = {{0, 1, std::move(array)}}});
}

} // namespace

TypeRef subarray(Counts sizes, Counts subsizes, Counts starts, int order, const Type& old,
                 bool large) {
  check_dimensions(sizes.size());
  check_order(order);
  check_subarray(sizes, subsizes, starts);
  ContentsBuilder contents(large, {sizes, subsizes, starts});
  contents.integer(static_cast<int>(sizes.size()));
  contents.counts(sizes).counts(subsizes).counts(starts).integer(order);

  TypeRef array(old);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t d = fastest(i, sizes.size(), order);
    const MPI_Count displacement = narrow(Wide{starts[d]} * array->extent(), "displacement");
    array = line({{displacement, subsizes[d], array}}, sizes[d], *array);
  }
  return finished(MPI_COMBINER_SUBARRAY, contents.with(old), std::move(array));
}

TypeRef darray(const Distribution& distribution, const Type& old, bool large) {
  const Distribution& d = distribution;
  const std::size_t dimensions = d.global_sizes.size();
  check_dimensions(dimensions);
  check_order(d.order);
  check_grid(d);
  ContentsBuilder contents(large, {d.global_sizes});
  contents.integer(d.size).integer(d.rank).integer(static_cast<int>(dimensions));
  contents.counts(d.global_sizes).integers(d.distributions).integers(d.arguments);
  contents.integers(d.grid).integer(d.order);

  const std::vector<MPI_Count> place = place_in_grid(d);
  TypeRef array(old);
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t dimension = fastest(i, dimensions, d.order);
    array = dealt(deal(d, dimension, place[dimension]), *array);
  }
  return finished(MPI_COMBINER_DARRAY, contents.with(old), std::move(array));
}

} // namespace macadam::datatype
