// SPDX-License-Identifier: BSD-3-Clause
#include "mem/buffers.h"

#include "base/error.h"

#include <bit>
#include <cstdint>
#include <new>

namespace macadam::mem {

namespace {

constexpr unsigned smallest_shift = 6;

unsigned size_class(std::size_t bytes) {
  if (bytes <= Buffers::alignment) return 0;
  return static_cast<unsigned>(std::bit_width(bytes - 1)) - smallest_shift;
}

// What take(bytes) asks of the system. 0 if it cannot be expressed.
std::size_t room(std::size_t bytes) {
  if (bytes <= Buffers::largest_class) return Buffers::alignment << size_class(bytes);
  return (bytes + Buffers::alignment - 1) & ~(Buffers::alignment - 1);
}

void free_aligned(void* buffer) {
  ::operator delete (buffer, std::align_val_t{Buffers::alignment});
}

} // namespace

Buffers::~Buffers() {
  for (Free*& list : free_) {
    while (list != nullptr) {
      Free* next = list->next;
      free_aligned(list);
      list = next;
    }
  }
}

std::byte* Buffers::take(std::size_t bytes) {
  if (std::byte* const buffer = try_take(bytes)) [[likely]]
    return buffer;
  base::fail(MPI_ERR_NO_MEM,
             "the system has no {} bytes for a message that has to be kept or packed inside the "
             "library, which holds {} bytes for such messages already; receive messages sooner, "
             "or give the process more memory",
             bytes, held_);
}

std::byte* Buffers::try_take(std::size_t bytes) noexcept {
  if (bytes > largest_class) return allocate(bytes);
  const unsigned index = size_class(bytes);
  Free* buffer = free_[index];
  if (buffer == nullptr) return allocate(bytes);
  free_[index] = buffer->next;
  cached_ -= alignment << index;
  return reinterpret_cast<std::byte*>(buffer);
}

void Buffers::give(std::byte* buffer, std::size_t bytes) noexcept {
  if (buffer == nullptr) return;
  const std::size_t size = room(bytes);
  if (bytes > largest_class || cached_ + size > cache_limit_) {
    release(buffer, size);
    return;
  }
  const unsigned index = size_class(bytes);
  free_[index] = new (buffer) Free{free_[index]};
  cached_ += size;
}

std::byte* Buffers::allocate(std::size_t bytes) noexcept {
  const std::size_t size = room(bytes);
  if (size == 0) return nullptr;
  const bool aliased = size > largest_class && size <= alias_.size();
  void* const memory =
      aliased ? alias_.data() : ::operator new (size, std::align_val_t{alignment}, std::nothrow);
  if (memory == nullptr) return nullptr;
  held_ += size;
  return static_cast<std::byte*>(memory);
}

void Buffers::release(std::byte* buffer, std::size_t size) noexcept {
  held_ -= size;
  if (buffer != alias_.data()) free_aligned(buffer);
}

} // namespace macadam::mem
