// SPDX-License-Identifier: BSD-3-Clause
#include "torture/starvation.h"

#include <cstddef>
#include <new>

namespace macadam::torture {

void Starvation::begin(std::uint64_t refused) {
  on_ = true;
  asked_ = 0;
  refused_ = refused;
}

namespace {

template <class... More>
void* allocate(std::size_t bytes, More... more) {
  if (Starvation::refuses()) throw std::bad_alloc();
  return ::operator new(bytes, more...);
}

template <class... More>
void* try_allocate(std::size_t bytes, More... more) noexcept {
  return Starvation::refuses() ? nullptr : ::operator new(bytes, more..., std::nothrow);
}

} // namespace
} // namespace macadam::torture

using macadam::torture::allocate;
using macadam::torture::try_allocate;
using std::align_val_t, std::nothrow_t, std::size_t;

// What starved.symbols calls the forms of operator new.
extern "C" {
void* starved_new(size_t bytes) {
  return allocate(bytes);
}
void* starved_new_array(size_t bytes) {
  return allocate(bytes);
}
void* starved_new_aligned(size_t bytes, align_val_t alignment) {
  return allocate(bytes, alignment);
}
void* starved_new_array_aligned(size_t bytes, align_val_t alignment) {
  return allocate(bytes, alignment);
}
void* starved_try_new(size_t bytes, const nothrow_t&) {
  return try_allocate(bytes);
}
void* starved_try_new_array(size_t bytes, const nothrow_t&) {
  return try_allocate(bytes);
}
void* starved_try_new_aligned(size_t bytes, align_val_t alignment, const nothrow_t&) {
  return try_allocate(bytes, alignment);
}
void* starved_try_new_array_aligned(size_t bytes, align_val_t alignment, const nothrow_t&) {
  return try_allocate(bytes, alignment);
}
}
