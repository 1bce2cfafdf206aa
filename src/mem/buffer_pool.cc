// SPDX-License-Identifier: BSD-3-Clause
#include "mem/buffer_pool.h"

#include "base/error.h"

#include <algorithm>
#include <new>
#include <utility>

namespace macadam::mem {

Buffer* BufferPool::take() {
  const std::scoped_lock guard(lock_);
  return take_locked(1, 0);
}

std::size_t BufferPool::take(std::span<Buffer*> buffers, std::size_t registering) {
  const std::scoped_lock guard(lock_);
  std::size_t got = 0;
  for (; got < buffers.size(); ++got) {
    if (registering == 0 && made_ - taken_ <= spare) break;
    const std::size_t wanted = std::max(buffers.size() - got, registering);
    buffers[got] = take_locked(wanted, spare);
    if (buffers[got] == nullptr) break;
  }
  return got;
}

void BufferPool::reserve(std::size_t count) {
  const std::scoped_lock guard(lock_);
  const std::size_t wanted = std::min(count, limit_ - std::min(taken_, limit_)) + spare;
  while (made_ - taken_ < wanted && grow(std::min(wanted - (made_ - taken_), reserve_arena))) {
  }
  reserved_ = std::max(reserved_, std::min(taken_ + wanted, made_) - spare);
  const bool grown = has_surplus();
  grown_.store(grown, std::memory_order_relaxed);
  falling_.store(grown, std::memory_order_relaxed);
}

void BufferPool::give(Buffer* buffer) {
  const std::scoped_lock guard(lock_);
  give_locked(*buffer);
}

void BufferPool::give(const std::vector<Buffer*>& buffers) {
  const std::scoped_lock guard(lock_);
  for (Buffer* const buffer : buffers)
    give_locked(*buffer);
}

// The arena that was full comes first, so that emptier ones become empty.
inline void BufferPool::give_locked(Buffer& buffer) {
  Arena& arena = *buffer.arena;
  buffer.next = arena.free;
  arena.free = &buffer;
  --arena.taken;
  --taken_;
  if (buffer.next != nullptr) return;
  if (arena.retiring)
    free_.push_back(arena);
  else
    free_.push_front(arena);
}

Buffer* BufferPool::exchange(Buffer* buffer) {
  const std::scoped_lock guard(lock_);
  if (!buffer->arena->retiring || free_.empty() || free_.front().retiring) return buffer;
  give_locked(*buffer);
  return take_free();
}

void BufferPool::resize_limit(std::ptrdiff_t by) {
  const std::scoped_lock guard(lock_);
  limit_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(limit_) + by);
}

std::size_t BufferPool::bytes() const {
  const std::scoped_lock guard(lock_);
  return pinned_ + made_ * sizeof(Buffer);
}

std::size_t BufferPool::taken() const {
  const std::scoped_lock guard(lock_);
  return taken_;
}

// The first of `wanted` that are to be taken.
Buffer* BufferPool::take_locked(std::size_t wanted, std::size_t to_leave) {
  if (taken_ >= limit_) return nullptr;
  if (made_ - taken_ <= to_leave && !grow(std::min(wanted, limit_ - taken_))) return nullptr;
  Buffer* const buffer = take_free();
  if (taken_ > peak_) {
    peak_ = taken_;
    most_ = std::max<std::uint64_t>(most_, peak_);
  }
  return buffer;
}

// There is a free one.
inline Buffer* BufferPool::take_free() {
  Arena& arena = free_.front();
  Buffer* const buffer = arena.free;
  arena.free = buffer->next;
  ++arena.taken;
  ++taken_;
  arena.retiring = false; // all others are full: it is wanted after all
  if (arena.free == nullptr) free_.erase(arena);
  return buffer;
}

// One more arena, registered as a whole, for as many of `wanted` as one has at most. The device may
// refuse it, or there may be no memory: then the pool stays as large as it is.
bool BufferPool::grow(std::size_t wanted) {
  try {
    add_arena(wanted);
    return true;
  } catch (const base::Error&) {
    if (made_ == 0) throw;
  } catch (const std::bad_alloc&) {
    if (made_ == 0) throw;
  }
  return false;
}

void BufferPool::add_arena(std::size_t wanted) {
  const std::size_t count =
      std::min(round_up(wanted, smallest_arena), largest_arena) + (made_ == 0 ? spare : 0);
  const std::size_t bytes = count * buffer_bytes_;
  auto arena = std::make_unique<Arena>();
  arena->memory = allocate_pages(bytes, "message buffers");
  arena->region = device_.register_memory(arena->memory.get(), bytes, Access::local);
  arena->buffers = std::make_unique<Buffer[]>(count);
  arena->size = count;
  for (std::size_t i = count; i-- > 0;) {
    arena->buffers[i] = {.memory = arena->memory.get() + i * buffer_bytes_,
                         .next = arena->free,
                         .arena = arena.get(),
                         .local_key = arena->region->local_key};
    arena->free = &arena->buffers[i];
  }
  free_.push_front(*arenas_.emplace_back(std::move(arena)));
  if (made_ != 0) {
    grown_.store(true, std::memory_order_relaxed);
    falling_.store(true, std::memory_order_relaxed);
  }
  made_ += count;
  pinned_ += round_up(bytes, page);
}

void BufferPool::trim_grown(double now) {
  std::vector<std::unique_ptr<Arena>> gone; // given back without the lock
  const std::scoped_lock guard(lock_);
  if (now - period_began_ < period) return;
  const auto wanted = [&] { return std::max({peak_, last_peak_, reserved_, smallest_arena}); };
  const std::size_t kept = wanted();
  last_peak_ = peak_;
  peak_ = taken_;
  period_began_ = now;
  gone = retire(made_ - std::min(made_, kept));
  // A peak counts in two periods: with it gone, more may go.
  const bool falls = last_peak_ > peak_ || kept > wanted();
  // What is taken may sink at any later time, as receives left by a burst are used.
  const bool grown = has_surplus();
  grown_.store(grown, std::memory_order_relaxed);
  falling_.store(falls && grown, std::memory_order_relaxed);
}

// Lets go of arenas with as many buffers together, the emptiest first; of those alike the largest,
// as small ones would leave no room for it. What is taken of them comes back in time, as new takes
// are from those that stay, the fullest first. Returned are the arenas that nobody uses.
std::vector<std::unique_ptr<BufferArena>> BufferPool::retire(std::size_t surplus) {
  std::vector<std::unique_ptr<Arena>> gone;
  std::ranges::sort(arenas_, {}, [](const auto& arena) {
    return std::pair(arena->taken, -static_cast<std::ptrdiff_t>(arena->size));
  });
  for (auto& arena : arenas_) {
    arena->retiring = arena->size <= surplus;
    if (arena->retiring) surplus -= arena->size;
    if (arena->free == nullptr) continue;
    free_.erase(*arena);
    if (!arena->retiring) {
      free_.push_front(*arena);
    } else if (arena->taken != 0) {
      free_.push_back(*arena);
    } else {
      made_ -= arena->size;
      pinned_ -= round_up(arena->size * buffer_bytes_, page);
      gone.push_back(std::move(arena));
    }
  }
  std::erase(arenas_, nullptr);
  const bool any = std::ranges::any_of(arenas_, [](const auto& arena) { return arena->retiring; });
  retiring_.store(any, std::memory_order_relaxed);
  return gone;
}

} // namespace macadam::mem
