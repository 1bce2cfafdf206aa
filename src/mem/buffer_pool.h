// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "mem/pages.h"
#include "mem/registrar.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace macadam::mem {

struct BufferArena;

// A message buffer, registered for our own use. It never moves: a work request's id is its address.
struct Buffer {
  std::byte* memory = nullptr;
  Buffer* next = nullptr;
  BufferArena* arena = nullptr;
  std::uint32_t local_key = 0;
};

// Buffers registered together.
struct BufferArena : base::ListNode<> {
  PageMemory memory;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<Buffer[]> buffers;
  std::size_t size = 0;
  std::size_t taken = 0;
  Buffer* free = nullptr;
  bool retiring = false; // to be emptied: others are taken first
};

// Buffers of one size for sends and receives (Sur et al., section 2.2, "Buffer Pool"). Registered
// in arenas as they are first wanted. What nobody has wanted for one or two of
// `period` is given back, by trim(): an arena once none of its buffers is taken, and
// the emptiest arenas are emptied for that. So a burst that comes again within the period finds its
// buffers registered. Any thread: the progress thread takes receives from it while the application
// sends.
class BufferPool {
 public:
  static constexpr std::size_t smallest_arena = 32; // buffers registered together at least
  // ... at most; where others wait for them (registering) always so many.
  static constexpr std::size_t largest_arena = 128;
  // reserve() takes smaller blocks, so that the pool can shrink to what it was in whole arenas.
  static constexpr std::size_t reserve_arena = 64;
  static constexpr std::size_t spare = 2; // beyond the first arena, never for receives
  // Seconds: buffers that were not wanted in one such period, and in the one before, are given
  // back.
  static constexpr double period = 1;

  // Made of `buffer_bytes`-long buffers, at most `limit` of them.
  BufferPool(Registrar& device, std::size_t buffer_bytes, std::size_t limit)
      : device_(device), buffer_bytes_(buffer_bytes), limit_(limit) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer for a send. Null if all are in use. Throws base::Error if no memory can be had for the
  // very first ones.
  Buffer* take();
  // Takes as many buffers in one go as there is room for in the list; how many. For receives: they
  // hold them for long, so some are left for sends even if the device registers no more. If there
  // are too few, so many are registered at once, or as many as it takes; with 0 none.
  std::size_t take(std::span<Buffer*> buffers, std::size_t registering);
  // Registers, unless it is, what take() of so many for receives needs, so that it is quick. As
  // many buffers as are then in use and reserved are never given back.
  void reserve(std::size_t count);
  void give(Buffer* buffer);
  void give(const std::vector<Buffer*>& buffers);

  // Gives back what has not been wanted lately; does nothing if not a period has gone by since the
  // last time. `now` in seconds. Cheap while there is nothing to give back.
  void trim(double now) {
    if (grown_.load(std::memory_order_relaxed)) [[unlikely]]
      trim_grown(now);
  }
  [[nodiscard]] bool grown() const { return grown_.load(std::memory_order_relaxed); }
  // A period later there will be something to give back, whether or not messages come.
  [[nodiscard]] bool falling() const { return falling_.load(std::memory_order_relaxed); }
  // Some arenas are to be emptied: a holder that keeps a buffer for long should exchange() it.
  [[nodiscard]] bool retiring() const { return retiring_.load(std::memory_order_relaxed); }
  // Another buffer for one of an arena that is to be emptied, if there is one; else the same.
  Buffer* exchange(Buffer* buffer);

  // Raises (or lowers) the limit by buffers that belong to a connection.
  void resize_limit(std::ptrdiff_t by);

  [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] std::size_t bytes() const;                 // registered
  [[nodiscard]] std::size_t made() const { return made_; } // buffers; for tests
  [[nodiscard]] std::size_t taken() const;
  // Most that were ever taken at once: a counter.
  [[nodiscard]] const std::uint64_t& most() const { return most_; }

 private:
  using Arena = BufferArena;
  Buffer* take_locked(std::size_t wanted, std::size_t to_leave);
  Buffer* take_free();
  void give_locked(Buffer& buffer);
  bool grow(std::size_t wanted);
  void add_arena(std::size_t wanted);
  // Some arena may at some time be given back.
  [[nodiscard]] bool has_surplus() const {
    return arenas_.size() > 1 && made_ >= reserved_ + smallest_arena;
  }
  void trim_grown(double now);
  std::vector<std::unique_ptr<Arena>> retire(std::size_t surplus);

  Registrar& device_;
  const std::size_t buffer_bytes_;
  mutable std::mutex lock_;
  std::size_t limit_;
  std::size_t made_ = 0;
  std::size_t pinned_ = 0; // bytes, in whole pages
  std::uint64_t most_ = 0; // ever taken at once
  std::size_t taken_ = 0;
  std::vector<std::unique_ptr<Arena>> arenas_;
  base::List<Arena> free_; // with free buffers; those that are retiring last

  // Most that were taken at once in this period, and in the one before.
  std::size_t peak_ = 0;
  std::size_t last_peak_ = 0;
  std::size_t reserved_ = 0;        // of all buffers: not fewer are kept
  double period_began_ = 0;         // seconds
  std::atomic<bool> grown_ = false; // has_surplus()
  std::atomic<bool> falling_ = false;
  std::atomic<bool> retiring_ = false;
};

} // namespace macadam::mem
