// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/layout.h"
#include "datatype/type.h"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace macadam::datatype {

// A contiguous piece of a user's buffer.
struct Segment {
  std::byte* data;
  MPI_Count bytes;
};

// Such pieces of one length at equal distances.
struct SegmentRun {
  std::byte* data; // of the first
  MPI_Count bytes; // of each
  MPI_Count stride;
  MPI_Count count;
};

// Walks the data of (buffer, count, type) in packing order, from any point, in any steps. The
// packed stream is the contiguous data: packed_size(type, count) bytes. Memory is a few words a
// level of nesting that is left after flattening, allocated only beyond four levels.
// The type must be committed and outlive the cursor; the buffer is only touched by pack and unpack.
class PackCursor {
 public:
  PackCursor(const Type& type, const void* buffer, MPI_Count count);
  PackCursor(const PackCursor&) = delete; // its frames point into it: construct it in place
  PackCursor& operator=(const PackCursor&) = delete;

  // Copies the next min(max, remaining) bytes of the stream into `out`; returns how many.
  std::size_t pack(void* out, std::size_t max);
  // Copies min(bytes, remaining) bytes of a packed stream into the buffer; returns how many.
  std::size_t unpack(const void* in, std::size_t bytes);
  // The next contiguous piece, at most `max` bytes; {nullptr, 0} at the end. Pieces of one layout
  // run are never split but by `max` or a seek; neighbouring pieces may touch.
  Segment next_segment(MPI_Count max = INT64_MAX);
  // As many of the next pieces as lie so, at least one; at most `max` bytes of them. No count: at
  // the end.
  SegmentRun next_run(MPI_Count max);
  // Continues at this byte of the packed stream, 0 to total().
  void seek(MPI_Count packed_offset);

  [[nodiscard]] MPI_Count total() const { return total_; }
  [[nodiscard]] MPI_Count position() const { return position_; }
  [[nodiscard]] MPI_Count remaining() const { return total_ - position_; }
  [[nodiscard]] bool done() const { return position_ == total_; }

 private:
  // A level of the walk: iteration or piece `index` of `node`, whose first byte is at `base`.
  struct Frame {
    const Layout* node;
    std::uintptr_t base; // an integer: MPI_BOTTOM plus a displacement is no pointer arithmetic
    MPI_Count index;     // next to be entered
  };
  static constexpr std::size_t inline_frames = 4;

  template <bool packing>
  std::size_t move(std::byte* stream, std::size_t bytes);
  template <bool packing>
  std::size_t move_items(std::byte* stream, std::size_t bytes);
  Frame& current();
  void enter_run();

  MPI_Count total_;
  Layout root_; // count elements, one extent apart
  std::uintptr_t start_;
  MPI_Count position_ = 0;
  std::uintptr_t run_ = 0; // what is left of the run entered last
  MPI_Count run_bytes_ = 0;
  std::size_t depth_ = 0;
  Frame* frames_;
  std::array<Frame, inline_frames> inline_;
  std::unique_ptr<Frame[]> heap_;
};

// Copies a packed stream into (buffer, count, type) from its start. False if the walk of a type of
// many levels finds no memory: nothing was copied.
[[nodiscard]] bool unpack(const Type& type, void* buffer, MPI_Count count, const void* in,
                          std::size_t bytes) noexcept;

} // namespace macadam::datatype
