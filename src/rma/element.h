// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/op.h"
#include "datatype/type.h"
#include "rma/runs.h"

#include <cstddef>

// What an accumulate does to elements in memory.
namespace macadam::rma {

// Widths for which the processor has atomics, in bytes.
constexpr bool is_atomic_width(MPI_Count bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

// Whether elements are added as words are.
bool is_integer(const datatype::Type& element);

// Whether MPI_Compare_and_swap takes it: a predefined integer, logical or byte.
bool can_be_swapped(const datatype::Type& type);

// there[i] = ours[i] op there[i] for `count` elements of an atomic width, each in one step that no
// other breaks; the values before go to `old`. All arrays are aligned to the element.
void combine_atomically(const datatype::Op& op, const datatype::Type& element, std::byte* there,
                        const std::byte* ours, std::byte* old, std::size_t count);

// The same for compare-and-swap of one element of `bytes` bytes; the value before goes to `old`.
void compare_and_swap_atomically(std::byte* there, const void* ours, const void* compare, void* old,
                                 std::size_t bytes);

// Packed elements, and room for them as arrays, used if the type is noncontiguous.
struct Operands {
  std::byte* ours = nullptr;
  std::byte* old = nullptr;    // what the target had
  std::byte* result = nullptr; // ours op old
  std::byte* ours_spread = nullptr;
  std::byte* result_spread = nullptr;
};
void combine(const datatype::Op& op, const datatype::Type& element, std::size_t bytes,
             const Operands& operands);

// The same to memory of this process: `bytes` bytes of elements in runs. `ours` is aligned to 16
// bytes; the values before go to `old` unless it is null.
void combine_here(const datatype::Op& op, const datatype::Type& element, const RunsHere& runs,
                  std::size_t bytes, std::byte* ours, std::byte* old);

} // namespace macadam::rma
