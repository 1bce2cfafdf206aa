// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/remake.h"

#include "datatype/constructors.h"

#include <unordered_map>
#include <vector>

namespace macadam::datatype {
namespace {

using Replaced = std::function<TypeRef(const Type&)>;
using Remade = std::unordered_map<const Type*, TypeRef>; // by what it was

// The arguments of the constructor call, one after the other in the order of the standard's tables.
class ContentsReader {
 public:
  explicit ContentsReader(const Contents& contents) : contents_(contents) {}

  int integer() { return contents_.integers[integers_++]; }
  MPI_Count count() { return contents_.counts.empty() ? integer() : contents_.counts[counts_++]; }
  MPI_Count address() {
    return contents_.counts.empty() ? contents_.addresses[addresses_++]
                                    : contents_.counts[counts_++];
  }
  std::vector<MPI_Count> counts(MPI_Count n) {
    std::vector<MPI_Count> values;
    for (MPI_Count i = 0; i < n; ++i)
      values.push_back(count());
    return values;
  }
  std::vector<MPI_Count> addresses(MPI_Count n) {
    std::vector<MPI_Count> values;
    for (MPI_Count i = 0; i < n; ++i)
      values.push_back(address());
    return values;
  }
  std::vector<int> integers(MPI_Count n) {
    std::vector<int> values;
    for (MPI_Count i = 0; i < n; ++i)
      values.push_back(integer());
    return values;
  }

 private:
  const Contents& contents_;
  std::size_t integers_ = 0, addresses_ = 0, counts_ = 0;
};

TypeRef made_struct(const Type& type, ContentsReader& read, const Remade& inner) {
  const MPI_Count count = read.count();
  const std::vector<MPI_Count> lengths = read.counts(count);
  const std::vector<MPI_Count> displacements = read.addresses(count);
  std::vector<const Type*> types;
  for (const TypeRef& part : type.contents().types)
    types.push_back(inner.at(part.get()).get());
  return struct_(lengths, displacements, types);
}

TypeRef made_subarray(const Type& old, ContentsReader& read) {
  const MPI_Count dimensions = read.integer();
  const std::vector<MPI_Count> sizes = read.counts(dimensions);
  const std::vector<MPI_Count> subsizes = read.counts(dimensions);
  const std::vector<MPI_Count> starts = read.counts(dimensions);
  return subarray(sizes, subsizes, starts, read.integer(), old);
}

TypeRef made_darray(const Type& old, ContentsReader& read) {
  Distribution how{};
  how.size = read.integer();
  how.rank = read.integer();
  const MPI_Count dimensions = read.integer();
  const std::vector<MPI_Count> sizes = read.counts(dimensions);
  const std::vector<int> distributions = read.integers(dimensions);
  const std::vector<int> arguments = read.integers(dimensions);
  const std::vector<int> grid = read.integers(dimensions);
  how.global_sizes = sizes;
  how.distributions = distributions;
  how.arguments = arguments;
  how.grid = grid;
  how.order = read.integer();
  return darray(how, old);
}

// Not committed. `inner`: what its contents have become.
TypeRef made(const Type& type, const Remade& inner, const Replaced& replaced) {
  if (type.predefined()) return replaced(type);
  ContentsReader read(type.contents());
  if (type.combiner() == MPI_COMBINER_STRUCT) return made_struct(type, read, inner);
  // Those that MPI_Type_create_f90_* gives out have no contents.
  if (type.contents().types.empty()) return replaced(*type.elementary());
  const TypeRef& old = inner.at(type.contents().types.front().get());
  switch (type.combiner()) {
  case MPI_COMBINER_CONTIGUOUS:
    return contiguous(read.count(), *old);
  case MPI_COMBINER_VECTOR: {
    const std::vector<MPI_Count> three = read.counts(3);
    return vector(three[0], three[1], three[2], *old);
  }
  case MPI_COMBINER_HVECTOR: {
    const std::vector<MPI_Count> two = read.counts(2);
    return hvector(two[0], two[1], read.address(), *old);
  }
  case MPI_COMBINER_INDEXED: {
    const MPI_Count count = read.count();
    const std::vector<MPI_Count> lengths = read.counts(count);
    return indexed(lengths, read.counts(count), *old);
  }
  case MPI_COMBINER_HINDEXED: {
    const MPI_Count count = read.count();
    const std::vector<MPI_Count> lengths = read.counts(count);
    return hindexed(lengths, read.addresses(count), *old);
  }
  case MPI_COMBINER_INDEXED_BLOCK: {
    const std::vector<MPI_Count> two = read.counts(2);
    return indexed_block(two[1], read.counts(two[0]), *old);
  }
  case MPI_COMBINER_HINDEXED_BLOCK: {
    const std::vector<MPI_Count> two = read.counts(2);
    return hindexed_block(two[1], read.addresses(two[0]), *old);
  }
  case MPI_COMBINER_SUBARRAY:
    return made_subarray(*old, read);
  case MPI_COMBINER_DARRAY:
    return made_darray(*old, read);
  case MPI_COMBINER_RESIZED: {
    const std::vector<MPI_Count> two = read.addresses(2);
    return resized(*old, two[0], two[1]);
  }
  default:
    return old; // MPI_COMBINER_DUP
  }
}

} // namespace

TypeRef remake(const Type& type, const Replaced& replaced) {
  // What is inside comes first, and once if shared; without recursion, for nesting may be deeper
  // than the stack.
  Remade remade;
  std::vector<const Type*> todo{&type};
  while (!todo.empty()) {
    const Type& next = *todo.back();
    if (remade.contains(&next)) {
      todo.pop_back();
      continue;
    }
    const std::size_t level = todo.size();
    for (const TypeRef& inner : next.contents().types)
      if (!remade.contains(inner.get())) todo.push_back(inner.get());
    if (todo.size() == level) remade.emplace(&next, made(next, remade, replaced));
  }
  TypeRef result = remade.at(&type);
  if (!result->committed()) result->commit();
  return result;
}

} // namespace macadam::datatype
