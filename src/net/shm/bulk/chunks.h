// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/segment.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

// Long data pass from one process to another through chunks, blocks of memory that both map. Every
// process lays some out. A sender takes a free one, of its own or of the receiver's, and says so in
// a message; the receiver frees it once it has copied the data out.
//
// Answers go through the chunks that data have just come through. Both cores have these lines in
// their caches: writing them takes them from one other cache, reading them fetches them from there.
// Other lines would have to come from further away, and push out what the application works with.
namespace macadam::net::shm {

// How a process has cut its memory for chunks.
struct ChunkPlan {
  std::uint64_t offset = 0; // of the words of all chunks in its segment; behind them the chunks
  std::uint32_t bytes = 0;  // of one chunk, a multiple of a line
  std::uint32_t count = 0;
};

// The chunks of one process.
class Chunks {
 public:
  static constexpr std::uint32_t most = 32;
  // Those of the first turn, less than any process has; the others are for when they are out, and
  // for what is put ahead.
  static constexpr std::uint32_t in_turn = 6;

  Chunks() = default;
  // In memory that outlives them and is zero at first.
  Chunks(std::byte* front, const ChunkPlan& plan)
      : words_(front + plan.offset), data_(words_ + plan.count * line_bytes), plan_(plan) {}

  static constexpr std::size_t memory_bytes(const ChunkPlan& plan) {
    return std::size_t{plan.count} * (line_bytes + plan.bytes);
  }

  [[nodiscard]] std::uint32_t count() const { return plan_.count; }
  [[nodiscard]] std::uint32_t chunk_bytes() const { return plan_.bytes; }
  [[nodiscard]] std::byte* data(std::uint32_t chunk) const {
    return data_ + std::size_t{chunk} * plan_.bytes;
  }

  // Takes a chunk for `holder`, a seat in the segment (shared_queue.h); false if it is not free.
  [[nodiscard]] bool take(std::uint32_t chunk, std::uint32_t holder) const {
    std::uint32_t nobody = 0;
    const auto at = word(chunk);
    return at.load(std::memory_order_relaxed) == nobody &&
           at.compare_exchange_strong(nobody, holder + 1, std::memory_order_acquire);
  }
  // Nothing: it is free.
  [[nodiscard]] std::optional<std::uint32_t> holder(std::uint32_t chunk) const {
    const std::uint32_t held = word(chunk).load(std::memory_order_relaxed);
    return held == 0 ? std::nullopt : std::optional(held - 1);
  }
  void free(std::uint32_t chunk) const { word(chunk).store(0, std::memory_order_release); }

 private:
  // The seat that took the chunk + 1, 0: it is free. In a line of its own.
  [[nodiscard]] std::atomic_ref<std::uint32_t> word(std::uint32_t chunk) const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_ + chunk * line_bytes));
  }

  std::byte* words_ = nullptr;
  std::byte* data_ = nullptr;
  ChunkPlan plan_;
};

// Chunks of a process, from one number to another, that are taken in turn. The first touch of a
// page takes longer than all copies through it: so the turn gets longer only when the next chunk is
// not free, or would hold what the same message has just brought.
class ChunkTurn {
 public:
  ChunkTurn(std::uint32_t first, std::uint32_t end)
      : first_(first), end_(end), used_end_(first + 1), next_(first) {}

  // Takes the next for `holder`, or one that was never used, for a message that fills `needed`;
  // false if neither is to be had: `chunk` is then the next.
  [[nodiscard]] bool take(const Chunks& chunks, std::uint32_t holder, std::size_t needed,
                          std::uint32_t& chunk) {
    chunk = next_;
    const bool is_long_enough = needed <= used_end_ - first_ || used_end_ == end_;
    if (is_long_enough && chunks.take(chunk, holder)) {
      pass();
      return true;
    }
    if (used_end_ == end_) return false;
    chunk = used_end_++;
    return chunks.take(chunk, holder);
  }
  void pass() { next_ = next_ + 1 < used_end_ ? next_ + 1 : first_; }

 private:
  std::uint32_t first_;
  std::uint32_t end_;
  std::uint32_t used_end_; // behind those that were ever taken
  std::uint32_t next_;
};

// Names a chunk within a pair of processes.
struct ChunkName {
  std::uint8_t chunk = 0;
  bool ours = false; // or the peer's
};

// The chunks through which a peer's data came last: few, so that they stay in the caches. They are
// taken again in the order of their use, so that long fragments meet long ones; of what is left
// over, the last first.
class WarmChunks {
 public:
  void add(ChunkName chunk) {
    if (count_ == chunks_.size()) remove(0);
    chunks_[count_++] = chunk;
    fresh_ = std::min(fresh_ + 1, count_);
  }
  // False if there is none.
  bool take(ChunkName& chunk) {
    if (count_ == 0) return false;
    const std::size_t at = count_ - std::max<std::size_t>(fresh_, 1);
    if (fresh_ > 0) --fresh_;
    chunk = chunks_[at];
    remove(at);
    return true;
  }

 private:
  void remove(std::size_t at) {
    std::move(chunks_.begin() + at + 1, chunks_.begin() + count_, chunks_.begin() + at);
    --count_;
  }

  std::array<ChunkName, 8> chunks_;
  std::size_t count_ = 0;
  std::size_t fresh_ = 0; // of these, added since chunks were taken
};

} // namespace macadam::net::shm
