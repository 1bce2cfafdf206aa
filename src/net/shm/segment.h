// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "engine/transport.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace macadam::net::shm {

using boot::Life;
using boot::SharedMemory;
using engine::Rank;

inline constexpr std::size_t line_bytes = 64;

// What stands at the start of every segment. Words that different processes write, or that one
// writes often and another polls, have a cache line of their own.
struct SegmentHeader {
  static constexpr std::uint64_t magic_value = 0x4d6163'73686d36; // "Mac" "shm6"

  std::uint64_t magic = 0;
  std::uint64_t front_bytes = 0;   // of the extent that this begins
  std::uint64_t queue_offset = 0;  // of the first line of the shared receive queue
  std::uint64_t queue_lines = 0;   // a power of two
  std::uint64_t chunks_offset = 0; // see ChunkPlan
  std::uint32_t chunk_bytes = 0;
  std::uint32_t chunk_count = 0;
  // A word of the owner's private memory and its value: a peer that can read it there may use
  // cross-memory attach, and knows that the process id is the right one.
  std::uint64_t probe_address = 0;
  std::uint64_t probe_value = 0;

  // Seats of processes that write here (shared_queue.h), those behind `seats_taken` never taken
  // yet; and the other jobs whose processes may, by their numbers + 1; 0: a free place.
  static constexpr std::size_t most_jobs = 509;
  alignas(line_bytes) std::uint32_t seats = 0;
  std::atomic<std::uint32_t> seats_taken{0};
  std::atomic<std::uint32_t> closed{0}; // nobody may access the owner's memory any more (access.h)
  std::atomic<std::uint32_t> jobs[most_jobs] = {};

  alignas(line_bytes) std::atomic<std::uint64_t> tail{0};   // queue: lines that senders have taken
  alignas(line_bytes) std::atomic<std::uint64_t> head{0};   // queue: lines that the owner gave back
  alignas(line_bytes) std::atomic<std::uint32_t> asleep{0}; // the owner sleeps on this word (futex)
  alignas(line_bytes) std::atomic<std::uint32_t> waiting{0}; // see Waiter

  // Gets of this process's peers that it may still take back, see stream.cc.
  static constexpr std::size_t claims = 16;
  alignas(line_bytes) std::atomic<std::uint32_t> claim[claims] = {};

  // Permits of this process: a word holds the number of one that is neither used nor revoked.
  static constexpr std::size_t permits = 256;
  alignas(line_bytes) std::atomic<std::uint64_t> permit[permits] = {};
};
static_assert(sizeof(SegmentHeader) == 70 * line_bytes);

// A range of a process's memory that its peers map as a whole, at their first use of anything in
// it. RemoteMemory names it by its key, and in it an address that counts from the start of all the
// owner's memory.
struct Extent {
  // Offset and size are multiples of this, and so of the system's pages, whatever their size.
  static constexpr std::uint64_t grain = std::uint64_t{64} << 10;

  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  // Not 0, as an extent is not empty. Capacities are below 2^48.
  [[nodiscard]] std::uint64_t key() const { return (offset / grain) << 32 | bytes / grain; }
  [[nodiscard]] static Extent of_key(std::uint64_t key) {
    return {(key >> 32) * grain, (key & 0xffffffff) * grain};
  }
  [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
  [[nodiscard]] bool holds(std::uint64_t address, std::size_t count) const {
    return address >= offset && address <= end() && count <= end() - address;
  }
  // The same for whole lines.
  [[nodiscard]] bool holds_lines(std::uint64_t address, std::uint64_t lines) const {
    return address % line_bytes == 0 && lines <= bytes / line_bytes &&
           holds(address, lines * line_bytes);
  }
  [[nodiscard]] bool overlaps(const Extent& other) const {
    return offset < other.end() && other.offset < end();
  }
};

// An extent in this address space. Its pages are taken from the system when they are touched.
class Mapping {
 public:
  Mapping() = default;
  // Throws MPI_ERR_NO_MEM, which names the amount and the limit.
  Mapping(const SharedMemory& memory, Extent extent);
  // Memory of this process alone.
  explicit Mapping(Extent extent);
  // Makes that a range of `memory`, in the same place and with the same content. Nobody may write
  // to it meanwhile. Throws MPI_ERR_NO_MEM.
  void share(const SharedMemory& memory);
  [[nodiscard]] bool is_shared() const { return shared_; }
  Mapping(Mapping&& other) noexcept { *this = static_cast<Mapping&&>(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] const Extent& extent() const { return extent_; }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::byte* at(std::uint64_t address) const {
    return base_ + (address - extent_.offset);
  }
  [[nodiscard]] std::uint64_t address_of(const void* memory) const {
    return extent_.offset +
           static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_);
  }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  // Gives the pages back to the system, for all who map them.
  void discard();

 private:
  std::byte* base_ = nullptr;
  Extent extent_;
  bool shared_ = false;
  bool ours_ = true; // to be unmapped
};

// The memory of this process: extents, made and removed as they are needed. That of a process
// without neighbours is its own, until it meets other jobs.
class Segment {
 public:
  // Makes the first extent, the front, of at least `front` bytes; it begins with the header. Throws
  // MPI_ERR_NO_MEM. `job` outlives the segment.
  Segment(boot::Job& job, std::uint64_t front);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  // Processes of other jobs may map the front and what is added from now on; what was added before
  // stays this process's own. Throws MPI_ERR_NO_MEM or MPI_ERR_OTHER.
  void share();
  [[nodiscard]] bool is_shared() const { return shared_; }

  [[nodiscard]] const Mapping& front() const { return by_offset_.begin()->second; }
  // A new extent of at least `bytes`; null: why_not() tells.
  const Mapping* add(std::uint64_t bytes);
  // Ends it and gives its memory back. Peers unmap it when something else takes its place.
  void remove(const Mapping& mapping);
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  // The extent that holds this memory of ours; null: none.
  [[nodiscard]] const Mapping* find(const void* memory, std::size_t bytes) const;
  // The same by its address in the segment.
  [[nodiscard]] const Mapping* find(std::uint64_t address, std::size_t bytes) const;

 private:
  [[nodiscard]] std::uint64_t find_room(std::uint64_t bytes) const;

  boot::Job& job_;
  bool shared_;
  std::map<std::uint64_t, Mapping> by_offset_;
  std::map<const std::byte*, const Mapping*> by_base_;
  std::string why_not_;
};

// What is mapped here of another process's memory.
class Mappings {
 public:
  // The extent with this key; null: it is not mapped.
  [[nodiscard]] const Mapping* find(std::uint64_t key) const;
  // Maps it. What it overlaps was removed by its owner before: that is unmapped.
  const Mapping& add(Mapping mapping);
  // Gives it out of hand, if it is mapped.
  std::optional<Mapping> take(std::uint64_t key);

 private:
  std::vector<Mapping> sorted_; // by key
};

} // namespace macadam::net::shm
