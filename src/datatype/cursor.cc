// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/cursor.h"

#include "base/copy.h"
#include "base/error.h"

#include <algorithm>
#include <cstring>

namespace macadam::datatype {

using Kind = Layout::Kind;

namespace {

template <bool packing>
void copy(std::byte* stream, std::uintptr_t memory, std::size_t bytes) {
  auto* data = reinterpret_cast<std::byte*>(memory);
  std::memcpy(packing ? stream : data, packing ? data : stream, bytes);
}

// `block` is a constant in the callers that matter, so that a block is a load and a store.
template <bool packing>
[[gnu::always_inline]] inline void copy_loop(std::byte* stream, std::uintptr_t memory,
                                             MPI_Count blocks, std::size_t block,
                                             MPI_Count stride) {
  for (MPI_Count i = 0; i < blocks; ++i) {
    copy<packing>(stream, memory, block);
    stream += block;
    memory += static_cast<std::uintptr_t>(stride);
  }
}

template <bool packing>
void copy_blocks(std::byte* stream, std::uintptr_t memory, MPI_Count blocks, std::size_t block,
                 MPI_Count stride) {
  switch (block) {
  case 1:
    return copy_loop<packing>(stream, memory, blocks, 1, stride);
  case 2:
    return copy_loop<packing>(stream, memory, blocks, 2, stride);
  case 4:
    return copy_loop<packing>(stream, memory, blocks, 4, stride);
  case 8:
    return copy_loop<packing>(stream, memory, blocks, 8, stride);
  case 16:
    return copy_loop<packing>(stream, memory, blocks, 16, stride);
  case 24:
    return copy_loop<packing>(stream, memory, blocks, 24, stride);
  case 32:
    return copy_loop<packing>(stream, memory, blocks, 32, stride);
  default:
    return copy_loop<packing>(stream, memory, blocks, block, stride);
  }
}

// A run of a list: most are small, and for those a call of memcpy costs more than the copy.
template <bool packing>
void copy_run(std::byte* stream, std::uintptr_t memory, std::size_t bytes) {
  switch (bytes) {
  case 4:
    return copy<packing>(stream, memory, 4);
  case 8:
    return copy<packing>(stream, memory, 8);
  case 16:
    return copy<packing>(stream, memory, 16);
  default:
    return copy<packing>(stream, memory, bytes);
  }
}

std::uintptr_t displaced(std::uintptr_t address, MPI_Count bytes) {
  return address + static_cast<std::uintptr_t>(bytes);
}

// The items of a node are the copies of a loop or the pieces of a list.
MPI_Count items(const Layout& node) {
  return node.kind == Kind::loop ? node.count : static_cast<MPI_Count>(node.pieces.size()) - 1;
}

// A layout may be deeper than the stack: of one with more levels runs are entered one by one.
constexpr int most_recursion = 64;

// Copies the items from `first` up to `last` of a node at `memory`. `stream` is where the first of
// them goes. Recursion is as deep as the node.
template <bool packing>
void copy_items(const Layout& node, MPI_Count first, MPI_Count last, std::byte* stream,
                std::uintptr_t memory) {
  if (node.kind == Kind::loop) {
    memory = displaced(memory, first * node.stride);
    if (!node.body) {
      copy_blocks<packing>(stream, memory, last - first, static_cast<std::size_t>(node.block),
                           node.stride);
      return;
    }
    for (MPI_Count i = first; i < last; ++i) {
      copy_items<packing>(*node.body, 0, items(*node.body), stream, memory);
      stream += node.block;
      memory = displaced(memory, node.stride);
    }
    return;
  }
  const auto* end = node.pieces.data() + last;
  for (const auto* piece = node.pieces.data() + first; piece != end; ++piece) {
    const MPI_Count bytes = piece[1].start - piece->start;
    const std::uintptr_t at = displaced(memory, piece->offset);
    if (piece->body) {
      copy_items<packing>(*piece->body, 0, items(*piece->body), stream, at);
    } else {
      copy_run<packing>(stream, at, static_cast<std::size_t>(bytes));
    }
    stream += bytes;
  }
}

// The piece of a list in which this byte of its packed stream lies.
MPI_Count piece_at(const Layout& list, MPI_Count byte) {
  const auto after = std::upper_bound(
      list.pieces.begin(), list.pieces.end(), byte,
      [](MPI_Count wanted, const Layout::Piece& piece) { return wanted < piece.start; });
  return after - list.pieces.begin() - 1;
}

} // namespace

PackCursor::PackCursor(const Type& type, const void* buffer, MPI_Count count)
    : total_(packed_size(type, count)), root_(repeat(type.layout(), count, type.extent())),
      start_(displaced(reinterpret_cast<std::uintptr_t>(buffer), root_.origin)),
      frames_(inline_.data()) {
  const auto levels = static_cast<std::size_t>(root_.depth);
  if (levels > inline_frames) {
    heap_ = std::make_unique<Frame[]>(levels);
    frames_ = heap_.get();
  }
  seek(0);
}

void PackCursor::seek(MPI_Count packed_offset) {
  if (packed_offset < 0 || packed_offset > total_) {
    base::fail(MPI_ERR_INTERN, "seek to byte {} of a packed stream of {} bytes", packed_offset,
               total_);
  }
  position_ = packed_offset;
  depth_ = 0;
  run_bytes_ = 0;
  if (packed_offset == total_) return;

  const Layout* node = &root_;
  std::uintptr_t at = start_;
  MPI_Count rest = packed_offset; // bytes of `node` to skip
  MPI_Count run = root_.size;
  while (node && node->kind != Kind::run) {
    Frame& frame = frames_[depth_++];
    frame = {node, at, 0};
    if (rest == 0) return; // in front of the node: its items can be copied whole
    const Layout* body = node->body;
    if (node->kind == Kind::loop) {
      frame.index = rest / node->block;
      rest -= frame.index * node->block;
      at = displaced(at, frame.index * node->stride);
      run = node->block;
    } else {
      frame.index = piece_at(*node, rest);
      const auto* piece = node->pieces.data() + frame.index;
      rest -= piece->start;
      at = displaced(at, piece->offset);
      body = piece->body;
      run = piece[1].start - piece->start;
    }
    if (rest == 0) return;
    ++frame.index;
    node = body;
  }
  run_ = displaced(at, rest);
  run_bytes_ = run - rest;
}

// Leaves the levels that are done; with data remaining, at least one stays.
PackCursor::Frame& PackCursor::current() {
  while (frames_[depth_ - 1].index == items(*frames_[depth_ - 1].node))
    --depth_;
  return frames_[depth_ - 1];
}

// Enters the next run; there must be one.
void PackCursor::enter_run() {
  for (;;) {
    Frame& frame = current();
    const Layout& node = *frame.node;
    const Layout* body = node.body;
    if (node.kind == Kind::loop) {
      run_ = displaced(frame.base, frame.index * node.stride);
      run_bytes_ = node.block;
    } else {
      const auto* piece = node.pieces.data() + frame.index;
      run_ = displaced(frame.base, piece->offset);
      run_bytes_ = piece[1].start - piece->start;
      body = piece->body;
    }
    ++frame.index;
    if (!body) return;
    frames_[depth_++] = {body, run_, 0};
  }
}

// Copies the next items of the current level that fit whole in `bytes`, but for those that are too
// deep; returns the bytes copied.
template <bool packing>
std::size_t PackCursor::move_items(std::byte* stream, std::size_t bytes) {
  Frame& frame = current();
  const Layout& node = *frame.node;
  if (node.depth > most_recursion) return 0;
  const MPI_Count first = frame.index;
  const auto limit = static_cast<MPI_Count>(bytes);
  MPI_Count moved = 0;
  if (node.kind == Kind::loop) {
    frame.index += std::min(node.count - first, limit / node.block);
    moved = (frame.index - first) * node.block;
  } else {
    const auto* pieces = node.pieces.data();
    frame.index = piece_at(node, std::min(node.size, pieces[first].start + limit));
    moved = pieces[frame.index].start - pieces[first].start;
  }
  copy_items<packing>(node, first, frame.index, stream, frame.base);
  return static_cast<std::size_t>(moved);
}

template <bool packing>
std::size_t PackCursor::move(std::byte* stream, std::size_t bytes) {
  const std::size_t todo = std::min(bytes, static_cast<std::size_t>(remaining()));
  std::size_t left = todo;
  while (left > 0) {
    std::size_t moved = 0;
    if (run_bytes_ == 0) {
      moved = move_items<packing>(stream, left);
      if (moved == 0) enter_run(); // the next item has to be cut, or is too deep
    } else {
      moved = std::min(left, static_cast<std::size_t>(run_bytes_));
      copy<packing>(stream, run_, moved);
      run_ += moved;
      run_bytes_ -= static_cast<MPI_Count>(moved);
    }
    stream += moved;
    left -= moved;
  }
  position_ += static_cast<MPI_Count>(todo);
  base::touched(todo);
  return todo;
}

std::size_t PackCursor::pack(void* out, std::size_t max) {
  return move<true>(static_cast<std::byte*>(out), max);
}

std::size_t PackCursor::unpack(const void* in, std::size_t bytes) {
  // Only read from: one copy routine serves both directions.
  return move<false>(static_cast<std::byte*>(const_cast<void*>(in)), bytes);
}

Segment PackCursor::next_segment(MPI_Count max) {
  if (done()) return {nullptr, 0};
  if (run_bytes_ == 0) enter_run();
  const Segment segment{reinterpret_cast<std::byte*>(run_), std::min(run_bytes_, max)};
  run_ += static_cast<std::uintptr_t>(segment.bytes);
  run_bytes_ -= segment.bytes;
  position_ += segment.bytes;
  return segment;
}

SegmentRun PackCursor::next_run(MPI_Count max) {
  if (done()) return {nullptr, 0, 0, 0};
  if (run_bytes_ == 0) {
    Frame& frame = current();
    const Layout& node = *frame.node;
    if (node.kind == Kind::loop && node.body == nullptr && node.block <= max) {
      const MPI_Count count = std::min(node.count - frame.index, max / node.block);
      const std::uintptr_t first = displaced(frame.base, frame.index * node.stride);
      frame.index += count;
      position_ += count * node.block;
      return {reinterpret_cast<std::byte*>(first), node.block, node.stride, count};
    }
  }
  const Segment one = next_segment(max);
  return {one.data, one.bytes, 0, 1};
}

bool unpack(const Type& type, void* buffer, MPI_Count count, const void* in,
            std::size_t bytes) noexcept {
  try {
    PackCursor(type, buffer, count).unpack(in, bytes);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

} // namespace macadam::datatype
