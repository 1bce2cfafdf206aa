// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"

#include <span>

// The type constructors of MPI, in their large-count form. Displacements and strides are in bytes
// in hvector, hindexed, hindexed_block, struct_ and resized, in extents of the old type elsewhere.
// All throw MPI_ERR_COUNT for a negative count, MPI_ERR_ARG for other bad arguments, and
// MPI_ERR_TYPE if a size or bound of the new type does not fit MPI_Count.
// The new type is not committed (dup keeps the state of the old one).
//
// `large`: made by the _c form of the call; then contents() holds counts in place of integers and
// addresses. That is also so if a value does not fit an int.

namespace macadam::datatype {

using Counts = std::span<const MPI_Count>;

[[nodiscard]] TypeRef contiguous(MPI_Count count, const Type& old, bool large = false);
[[nodiscard]] TypeRef vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                             const Type& old, bool large = false);
[[nodiscard]] TypeRef hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                              const Type& old, bool large = false);
[[nodiscard]] TypeRef indexed(Counts blocklengths, Counts displacements, const Type& old,
                              bool large = false);
[[nodiscard]] TypeRef hindexed(Counts blocklengths, Counts displacements, const Type& old,
                               bool large = false);
[[nodiscard]] TypeRef indexed_block(MPI_Count blocklength, Counts displacements, const Type& old,
                                    bool large = false);
[[nodiscard]] TypeRef hindexed_block(MPI_Count blocklength, Counts displacements, const Type& old,
                                     bool large = false);
[[nodiscard]] TypeRef struct_(Counts blocklengths, Counts displacements,
                              std::span<const Type* const> types, bool large = false);
[[nodiscard]] TypeRef resized(const Type& old, MPI_Count lb, MPI_Count extent, bool large = false);
[[nodiscard]] TypeRef dup(const Type& old);

// `order` is MPI_ORDER_C or MPI_ORDER_FORTRAN. The three spans have one entry a dimension.
[[nodiscard]] TypeRef subarray(Counts sizes, Counts subsizes, Counts starts, int order,
                               const Type& old, bool large = false);

// One entry a dimension in each span; `rank` of `size` processes, which the grid must use up.
struct Distribution {
  int size;
  int rank;
  Counts global_sizes;
  std::span<const int> distributions; // MPI_DISTRIBUTE_*
  std::span<const int> arguments;     // block sizes or MPI_DISTRIBUTE_DFLT_DARG
  std::span<const int> grid;          // processes
  int order;
};
[[nodiscard]] TypeRef darray(const Distribution& distribution, const Type& old, bool large = false);

} // namespace macadam::datatype
