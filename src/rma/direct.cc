// SPDX-License-Identifier: BSD-3-Clause
// The short ways of accumulates: elements of one predefined type, where all memory of the window is
// mapped by all its ranks. Each is atomic to the long ways (accumulate.cc), of which it is a part
// without what derived types and other memory need; false: take the long one, which also tells what
// is wrong.
#include "base/copy.h"
#include "datatype/op.h"
#include "rma/element.h"
#include "rma/remote_atomics.h"
#include "rma/window.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

namespace macadam::rma {

using datatype::Op;
using datatype::Type;

namespace {

// Bytes of which the old values are fetched before they are changed: all operands of them stay in
// the nearest cache.
constexpr std::size_t block_bytes = 4 << 10;

// `to`: a power of two, as in all that follows.
bool are_aligned(std::initializer_list<const void*> addresses, MPI_Count to) {
  std::uintptr_t bits = 0;
  for (const void* const address : addresses)
    bits |= reinterpret_cast<std::uintptr_t>(address);
  return (bits & static_cast<std::uintptr_t>(to - 1)) == 0;
}

// A predefined operation that takes the predefined type.
bool suits(const Op& op, const Type& type) {
  return op.kernel(*type.basic()) != nullptr || op.accumulate_only();
}

} // namespace

// Where elements of such a type are in our address space; null: the long way.
inline std::byte* Window::elements_here(const Type& type, MPI_Count count, int rank,
                                        MPI_Aint displacement) const {
  if (!data_by_processor_ || !type.predefined() || !type.contiguous() ||
      (type.size() & (type.size() - 1)) != 0)
    return nullptr;
  MPI_Count bytes = 0;
  if (count <= 0 || __builtin_mul_overflow(count, type.size(), &bytes)) return nullptr;
  return place_here(rank, displacement, static_cast<std::size_t>(bytes));
}

bool Window::accumulate_directly(const void* origin, void* result, MPI_Count count,
                                 const Type& type, int rank, MPI_Aint displacement, const Op& op) {
  std::byte* const there = elements_here(type, count, rank, displacement);
  if (there == nullptr || !suits(op, type) ||
      !are_aligned({there, origin, result}, type.alignment()))
    return false;
  Target& target = *targets_.find(rank);
  const auto* const ours = static_cast<const std::byte*>(origin);
  auto* const old = static_cast<std::byte*>(result);
  if (count <= few_elements && is_atomic_width(type.size()) && are_aligned({there}, type.size())) {
    ++counters_.by_atomics;
    std::uint64_t unwanted[few_elements];
    atomically(target, [&] {
      combine_atomically(op, type, there, ours,
                         old != nullptr ? old : reinterpret_cast<std::byte*>(unwanted),
                         static_cast<std::size_t>(count));
    });
    return true;
  }
  ++counters_.under_lock;
  stored_ = true;
  const int shift = std::countr_zero(static_cast<std::size_t>(type.size()));
  const std::size_t bytes = static_cast<std::size_t>(count) << shift;
  for (std::size_t first = 0; first < bytes; first += fragment_bytes) {
    const std::size_t end = std::min(first + fragment_bytes, bytes);
    run_in_bulk(target, false, [&] {
      for (std::size_t at = first, n = 0; at < end; at += n) {
        n = end - at;
        if (old != nullptr) {
          n = std::min(n, block_bytes);
          base::copy(old + at, there + at, n);
        }
        op.apply(ours + at, there + at, static_cast<MPI_Count>(n >> shift), type);
      }
    });
  }
  return true;
}

bool Window::compare_and_swap_directly(const void* origin, const void* compare, void* result,
                                       const Type& type, int rank, MPI_Aint displacement) {
  std::byte* const there = elements_here(type, 1, rank, displacement);
  if (there == nullptr || !is_atomic_width(type.size()) || !can_be_swapped(type) ||
      !are_aligned({there}, type.size()))
    return false;
  ++counters_.by_atomics;
  atomically(*targets_.find(rank), [&] {
    compare_and_swap_atomically(there, origin, compare, result,
                                static_cast<std::size_t>(type.size()));
  });
  return true;
}

} // namespace macadam::rma
