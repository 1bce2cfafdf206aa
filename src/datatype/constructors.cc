// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/constructors.h"

#include "base/error.h"
#include "datatype/contents_builder.h"
#include "datatype/wide.h"

namespace macadam::datatype {
namespace {

MPI_Count count_of(std::size_t size) {
  return static_cast<MPI_Count>(size);
}

void check_count(MPI_Count count) {
  if (count < 0) base::fail(MPI_ERR_COUNT, "count is {}, needed: 0 or more", count);
}

void check_blocklength(MPI_Count blocklength) {
  if (blocklength < 0) {
    base::fail(MPI_ERR_ARG, "blocklength is {}, needed: 0 or more", blocklength);
  }
}

void check_blocklengths(Counts blocklengths) {
  for (std::size_t i = 0; i < blocklengths.size(); ++i) {
    if (blocklengths[i] < 0) {
      base::fail(MPI_ERR_ARG, "blocklength {} of {} (counted from 0) is {}, needed: 0 or more", i,
                 blocklengths.size(), blocklengths[i]);
    }
  }
}

// `count` blocks, `stride` bytes apart.
Shape strided(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const Type& old) {
  return {.repeat = count, .stride = stride, .parts = {{0, blocklength, TypeRef(old)}}};
}

// Blocks at displacements in units of `unit` bytes. Where empty ones lie does not matter.
template <class Length>
Shape placed(Counts displacements, MPI_Count unit, const Type& old, Length length) {
  Shape shape;
  shape.parts.reserve(displacements.size());
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const MPI_Count blocklength = length(i);
    const MPI_Count displacement =
        blocklength > 0 ? narrow(Wide{displacements[i]} * unit, "displacement") : 0;
    shape.parts.push_back({displacement, blocklength, TypeRef(old)});
  }
  return shape;
}

} // namespace

TypeRef contiguous(MPI_Count count, const Type& old, bool large) {
  check_count(count);
  ContentsBuilder contents(large, {{&count, 1}});
  return Type::make(MPI_COMBINER_CONTIGUOUS, contents.count(count).with(old),
                    strided(1, count, 0, old));
}

TypeRef vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const Type& old,
               bool large) {
  check_count(count);
  check_blocklength(blocklength);
  const bool strides = count > 1 && blocklength > 0; // else it does not matter how far
  const MPI_Count bytes = strides ? narrow(Wide{stride} * old.extent(), "stride") : 0;
  ContentsBuilder contents(large, {{{count, blocklength, stride}}});
  return Type::make(MPI_COMBINER_VECTOR,
                    contents.count(count).count(blocklength).count(stride).with(old),
                    strided(count, blocklength, bytes, old));
}

TypeRef hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, const Type& old,
                bool large) {
  check_count(count);
  check_blocklength(blocklength);
  ContentsBuilder contents(large, {{{count, blocklength}}});
  return Type::make(MPI_COMBINER_HVECTOR,
                    contents.count(count).count(blocklength).address(stride).with(old),
                    strided(count, blocklength, stride, old));
}

TypeRef indexed(Counts blocklengths, Counts displacements, const Type& old, bool large) {
  check_blocklengths(blocklengths);
  const MPI_Count count = count_of(blocklengths.size());
  ContentsBuilder contents(large, {{&count, 1}, blocklengths, displacements});
  return Type::make(
      MPI_COMBINER_INDEXED,
      contents.count(count).counts(blocklengths).counts(displacements).with(old),
      placed(displacements, old.extent(), old, [&](std::size_t i) { return blocklengths[i]; }));
}

TypeRef hindexed(Counts blocklengths, Counts displacements, const Type& old, bool large) {
  check_blocklengths(blocklengths);
  const MPI_Count count = count_of(blocklengths.size());
  ContentsBuilder contents(large, {{&count, 1}, blocklengths});
  return Type::make(MPI_COMBINER_HINDEXED,
                    contents.count(count).counts(blocklengths).addresses(displacements).with(old),
                    placed(displacements, 1, old, [&](std::size_t i) { return blocklengths[i]; }));
}

TypeRef indexed_block(MPI_Count blocklength, Counts displacements, const Type& old, bool large) {
  check_blocklength(blocklength);
  const MPI_Count count = count_of(displacements.size());
  ContentsBuilder contents(large, {{&count, 1}, {&blocklength, 1}, displacements});
  return Type::make(
      MPI_COMBINER_INDEXED_BLOCK,
      contents.count(count).count(blocklength).counts(displacements).with(old),
      placed(displacements, old.extent(), old, [&](std::size_t) { return blocklength; }));
}

TypeRef hindexed_block(MPI_Count blocklength, Counts displacements, const Type& old, bool large) {
  check_blocklength(blocklength);
  const MPI_Count count = count_of(displacements.size());
  ContentsBuilder contents(large, {{&count, 1}, {&blocklength, 1}});
  return Type::make(MPI_COMBINER_HINDEXED_BLOCK,
                    contents.count(count).count(blocklength).addresses(displacements).with(old),
                    placed(displacements, 1, old, [&](std::size_t) { return blocklength; }));
}

TypeRef struct_(Counts blocklengths, Counts displacements, std::span<const Type* const> types,
                bool large) {
  check_blocklengths(blocklengths);
  const MPI_Count count = count_of(blocklengths.size());
  ContentsBuilder contents(large, {{&count, 1}, blocklengths});
  Shape shape;
  shape.parts.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    shape.parts.push_back({displacements[i], blocklengths[i], TypeRef(*types[i])});
  }
  return Type::make(MPI_COMBINER_STRUCT,
                    contents.count(count).counts(blocklengths).addresses(displacements).with(types),
                    std::move(shape));
}

TypeRef resized(const Type& old, MPI_Count lb, MPI_Count extent, bool large) {
  ContentsBuilder contents(large, {});
  const Type::Bounds bounds{lb, extent};
  return Type::make(MPI_COMBINER_RESIZED, contents.address(lb).address(extent).with(old),
                    strided(1, 1, 0, old), &bounds);
}

TypeRef dup(const Type& old) {
  TypeRef copy =
      Type::make(MPI_COMBINER_DUP, ContentsBuilder(false, {}).with(old), strided(1, 1, 0, old));
  if (old.committed()) copy->commit();
  return copy;
}

} // namespace macadam::datatype
