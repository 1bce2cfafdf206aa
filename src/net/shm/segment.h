// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/directory.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace macadam::net::shm {

inline constexpr std::size_t line_bytes = 64;

// What stands at the start of every segment. Words that different processes write, or that one
// writes often and another polls, have a cache line of their own.
struct SegmentHeader {
  static constexpr std::uint64_t magic_value = 0x4d6163'73686d31; // "Mac" "shm1"

  std::uint64_t magic = 0;
  std::uint64_t queue_offset = 0; // of the first line of the shared receive queue
  std::uint64_t queue_lines = 0;  // a power of two
  std::uint64_t cells_offset = 0; // see CellPlan
  std::uint32_t cell_bytes = 0;
  std::uint32_t cell_count = 0;
  // A word of the owner's private memory and its value: a peer that can read it there may use
  // cross-memory attach, and knows that the process id is the right one.
  std::uint64_t probe_address = 0;
  std::uint64_t probe_value = 0;

  alignas(line_bytes) std::atomic<std::uint64_t> tail{0};   // queue: lines that senders have taken
  alignas(line_bytes) std::atomic<std::uint64_t> head{0};   // queue: lines that the owner gave back
  alignas(line_bytes) std::atomic<std::uint32_t> asleep{0}; // the owner sleeps on this word (futex)
  alignas(line_bytes) std::atomic<std::uint32_t> waiting{0}; // the owner does nothing but poll

  // Gets of this process's peers that it may still take back, see stream.cc.
  static constexpr std::size_t claims = 16;
  alignas(line_bytes) std::atomic<std::uint32_t> claim[claims] = {};

  // Permits of this process: a word holds the number of one that is neither used nor revoked.
  static constexpr std::size_t permits = 256;
  alignas(line_bytes) std::atomic<std::uint64_t> permit[permits] = {};
};
static_assert(sizeof(SegmentHeader) == 38 * line_bytes);

// One process's memory, mapped here.
class Segment {
 public:
  Segment() = default;
  // Maps a segment whole; pages cost nothing before they are used. Throws MPI_ERR_NO_MEM.
  explicit Segment(const SharedMemory& memory);
  // Private memory, for a job of one.
  static Segment anonymous(std::size_t capacity);

  Segment(Segment&& other) noexcept { *this = static_cast<Segment&&>(other); }
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  [[nodiscard]] std::uint64_t offset_of(const void* memory) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_);
  }
  [[nodiscard]] bool contains(const void* memory, std::size_t bytes) const {
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    return start >= base && start - base < capacity_ && bytes <= capacity_ - (start - base);
  }
  [[nodiscard]] bool holds(std::uint64_t offset, std::size_t bytes) const {
    return offset <= capacity_ && bytes <= capacity_ - offset;
  }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  [[nodiscard]] bool mapped() const { return base_ != nullptr; }

  // Takes the memory of a range from the system now, so that touching it later cannot fail. Returns
  // 0, or the errno of the refusal.
  [[nodiscard]] int commit(std::uint64_t offset, std::size_t bytes);
  // Gives the memory of a range back; it must be committed again before use.
  void decommit(std::uint64_t offset, std::size_t bytes);

 private:
  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
  int fd_ = -1; // of the Directory; -1 for private memory
  std::uint64_t file_offset_ = 0;
};

} // namespace macadam::net::shm
