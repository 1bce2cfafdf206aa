// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/constructors.h"

#include <cstdint>
#include <random>
#include <vector>

// The standard's definition of datatypes, taken literally: a type is the list of its basic entries
// and its bounds. Only MPI_Type_create_struct pads. Slow, and written without a look at how the
// library does it.
namespace oracle {

using macadam::datatype::Type;
using macadam::datatype::TypeRef;
using List = std::vector<MPI_Count>;

struct Entry {
  std::int64_t displacement;
  std::int64_t size;
  std::int64_t alignment;
};

struct TypeMap {
  std::vector<Entry> entries;
  std::vector<std::int64_t> ends; // of entries, and of the padding behind structures
  std::vector<std::int64_t> lb_markers;
  std::vector<std::int64_t> ub_markers;

  std::int64_t lb() const;
  std::int64_t ub() const;
  std::int64_t extent() const { return ub() - lb(); }
  std::int64_t true_lb() const;
  std::int64_t true_ub() const;
  std::int64_t size() const;
  // Displacements of all data bytes in packing order, for `count` elements.
  std::vector<std::int64_t> bytes(std::int64_t count) const;
};

TypeMap basic(MPI_Datatype handle);
// Ends a structure: rounds its extent up to the strictest alignment, unless its bounds are marked.
void pad(TypeMap& map);
// Appends `length` copies of `old`, one extent apart, at `displacement`.
void append(TypeMap& map, std::int64_t displacement, std::int64_t length, const TypeMap& old);
TypeMap contiguous(std::int64_t count, const TypeMap& old);
TypeMap hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                const TypeMap& old);
TypeMap hindexed(const std::vector<std::int64_t>& blocklengths,
                 const std::vector<std::int64_t>& displacements, const TypeMap& old);
TypeMap resized(const TypeMap& old, std::int64_t lb, std::int64_t extent);

// A type made both ways.
struct Sample {
  TypeRef type;
  TypeMap map;
};

// A random tree of constructors, at most `depth` levels, a few thousand bytes of data at most.
// Displacements may be negative, entries may overlap.
Sample random_sample(std::mt19937& random, int depth);

const macadam::datatype::PredefinedTypes& predefined();

} // namespace oracle
