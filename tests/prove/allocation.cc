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

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (!Allocations::refuses()) {
    const std::size_t room = (bytes + alignment - 1) / alignment * alignment;
    if (void* const memory = std::aligned_alloc(alignment, room == 0 ? alignment : room))
      return memory;
  }
  throw std::bad_alloc();
}

} // namespace
} // namespace macadam::prove

// All other forms call these.
void* operator new(std::size_t bytes) {
  return macadam::prove::allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return macadam::prove::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
