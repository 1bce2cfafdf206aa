// SPDX-License-Identifier: BSD-3-Clause
#include "prove/allocation.h"

#include "prove/network.h"

#include <cstdlib>
#include <new>

namespace macadam::prove {

thread_local Allocations* Allocations::current = nullptr;

Allocations::Allocations(unsigned refusals, Decider& decider) : decider_(decider), left_(refusals) {
  current = this;
}

Allocations::~Allocations() {
  current = nullptr;
}

bool Allocations::decide() {
  const InLibrary test(false);
  if (decider_.choose(2) == 0) return false;
  --left_;
  ++refused_;
  return true;
}

namespace {

// Null if there is no memory.
void* try_allocate(std::size_t bytes, std::size_t alignment) {
  if (Allocations::refuses()) return nullptr;
  const std::size_t room = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, room == 0 ? alignment : room);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (void* const memory = try_allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

} // namespace
} // namespace macadam::prove

// All forms of `new` (and of `delete`), as a sanitizer has each of its own.
using macadam::prove::allocate;
using macadam::prove::try_allocate;

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return try_allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return try_allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return try_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return try_allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
