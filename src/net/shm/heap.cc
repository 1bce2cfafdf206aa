// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/heap.h"

#include "base/error.h"

#include <algorithm>
#include <bit>
#include <new>

namespace macadam::net::shm {
namespace {

constexpr std::size_t smallest = 4 * line_bytes;       // with the Block; steps are lines
constexpr std::size_t growth = std::size_t{256} << 10; // committed at a time
constexpr std::size_t large = std::size_t{1} << 20;    // gives its pages back when freed
constexpr std::size_t page = 4096;

// Class c has blocks of smallest * 2^(c / 4) * (4 + c % 4) / 4 bytes.
constexpr std::size_t class_bytes(std::size_t size_class) {
  return ((smallest / 4) << (size_class / 4)) * (4 + size_class % 4);
}

constexpr std::size_t class_of(std::size_t bytes) {
  if (bytes <= smallest) return 0;
  const auto doublings = static_cast<std::size_t>(std::bit_width(bytes - 1)) -
                         static_cast<std::size_t>(std::bit_width(smallest));
  std::size_t size_class = doublings * 4;
  while (class_bytes(size_class) < bytes)
    ++size_class;
  return size_class;
}
static_assert(class_bytes(class_of(smallest)) == smallest);
static_assert(class_bytes(class_of(smallest + 1)) == smallest / 4 * 5);
static_assert(class_bytes(class_of(1 << 20)) == 1 << 20);
static_assert(class_bytes(class_of((1 << 20) + 1)) == (1 << 20) / 4 * 5);

constexpr std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

} // namespace

Heap::Heap(Segment& segment, std::uint64_t start, std::uint64_t end)
    : segment_(&segment), unused_(up(start, page)), ready_(unused_), end_(end) {}

bool Heap::commit_up_to(std::uint64_t end) {
  if (end <= ready_) return true;
  const std::uint64_t target = std::min(up(end, growth), end_);
  if (segment_->commit(ready_, target - ready_) != 0) return false;
  committed_ += target - ready_;
  ready_ = target;
  return true;
}

void* Heap::allocate(std::size_t bytes) {
  if (bytes > end_) return nullptr;
  const std::size_t size_class = class_of(bytes + line_bytes);
  const std::size_t size = class_bytes(size_class);
  std::uint64_t offset = free_[size_class];
  if (offset != 0) {
    if (size >= large) {
      if (segment_->commit(offset + page, size - page) != 0) return nullptr;
      committed_ += size - page;
    }
    free_[size_class] = block(offset).next_free;
  } else {
    offset = size >= large ? up(unused_, page) : unused_;
    if (size > end_ - offset || !commit_up_to(offset + size)) return nullptr;
    unused_ = offset + size;
  }
  new (&block(offset)) Block{static_cast<std::uint32_t>(size_class), 1, 0};
  return segment_->at(offset + line_bytes);
}

void Heap::free(void* memory) {
  if (memory == nullptr) return;
  const std::uint64_t offset = segment_->offset_of(memory) - line_bytes;
  if (!segment_->contains(memory, 1) || offset >= unused_ || block(offset).in_use != 1) {
    base::fail(MPI_ERR_ARG, "shared memory: {} was freed, which is no allocated block", memory);
  }
  Block& freed = block(offset);
  const std::size_t size = class_bytes(freed.size_class);
  if (size >= large) {
    // The first page stays: it holds the Block. Large blocks are whole pages.
    segment_->decommit(offset + page, size - page);
    committed_ -= size - page;
  }
  freed.in_use = 0;
  freed.next_free = free_[freed.size_class];
  free_[freed.size_class] = offset;
}

} // namespace macadam::net::shm
