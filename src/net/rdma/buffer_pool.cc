// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/buffer_pool.h"

#include "base/error.h"
#include "net/rdma/model.h"

#include <algorithm>

namespace macadam::net::rdma {

PageMemory allocate_pages(std::size_t bytes, const char* purpose) {
  const std::size_t whole = model::round_up(bytes, model::page);
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(model::page, whole));
  if (memory == nullptr) {
    base::fail(MPI_ERR_NO_MEM,
               "RDMA: the system has no {} bytes for {}; give the process more memory, or lower "
               "MACADAM_RDMA_BUFFERS, MACADAM_RDMA_EAGER or MACADAM_RDMA_WINDOW",
               whole, purpose);
  }
  return PageMemory(memory);
}

Buffer* BufferPool::take() {
  const std::scoped_lock guard(lock_);
  return take_locked(1, 0);
}

std::size_t BufferPool::take(std::size_t count, std::vector<Buffer*>& buffers,
                             std::size_t registering) {
  const std::scoped_lock guard(lock_);
  std::size_t got = 0;
  for (; got < count; ++got) {
    if (registering == 0 && made_ - taken_ <= model::spare_buffers) break;
    Buffer* const buffer = take_locked(std::max(count - got, registering), model::spare_buffers);
    if (buffer == nullptr) break;
    buffers.push_back(buffer);
  }
  return got;
}

void BufferPool::reserve(std::size_t count) {
  const std::scoped_lock guard(lock_);
  const std::size_t free = made_ - taken_;
  const std::size_t wanted =
      std::min(count, limit_ - std::min(taken_, limit_)) + model::spare_buffers;
  if (wanted > free) grow(wanted - free);
}

void BufferPool::give(Buffer* buffer) {
  const std::scoped_lock guard(lock_);
  buffer->next = free_;
  free_ = buffer;
  --taken_;
}

void BufferPool::give(const std::vector<Buffer*>& buffers) {
  const std::scoped_lock guard(lock_);
  for (Buffer* const buffer : buffers) {
    buffer->next = free_;
    free_ = buffer;
  }
  taken_ -= buffers.size();
}

void BufferPool::resize_limit(std::ptrdiff_t by) {
  const std::scoped_lock guard(lock_);
  limit_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(limit_) + by);
}

std::size_t BufferPool::bytes() const {
  const std::scoped_lock guard(lock_);
  return made_ * (buffer_bytes_ + sizeof(Buffer));
}

std::size_t BufferPool::taken() const {
  const std::scoped_lock guard(lock_);
  return taken_;
}

// The first of `wanted` that are to be taken.
Buffer* BufferPool::take_locked(std::size_t wanted, std::size_t to_leave) {
  if (taken_ >= limit_) return nullptr;
  if (made_ - taken_ <= to_leave && !grow(std::min(wanted, limit_ - taken_))) return nullptr;
  Buffer* const buffer = free_;
  free_ = buffer->next;
  ++taken_;
  return buffer;
}

// One more chunk, registered as a whole. The device may refuse it: then the pool stays as large as
// it is.
bool BufferPool::grow(std::size_t wanted) {
  const std::size_t count =
      model::round_up(wanted, model::pool_chunk) + (made_ == 0 ? model::spare_buffers : 0);
  const std::size_t bytes = count * buffer_bytes_;
  Chunk chunk;
  try {
    chunk.memory = allocate_pages(bytes, "message buffers");
    chunk.region = device_.register_memory(chunk.memory.get(), bytes, Access::local);
  } catch (const base::Error&) {
    if (made_ == 0) throw;
    return false;
  }
  chunk.buffers = std::make_unique<Buffer[]>(count);
  for (std::size_t i = count; i-- > 0;) {
    Buffer& buffer = chunk.buffers[i];
    buffer.memory = chunk.memory.get() + i * buffer_bytes_;
    buffer.local_key = chunk.region->local_key;
    buffer.next = free_;
    free_ = &buffer;
  }
  made_ += count;
  chunks_.push_back(std::move(chunk));
  return true;
}

} // namespace macadam::net::rdma
