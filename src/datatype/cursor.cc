// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/cursor.h"

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
    const Layout* body = node->body;
    MPI_Count index = 0;
    MPI_Count offset = 0;
    if (node->kind == Kind::loop) {
      index = rest / node->block;
      rest -= index * node->block;
      offset = index * node->stride;
      run = node->block;
    } else {
      const auto after = std::upper_bound(
          node->pieces.begin(), node->pieces.end(), rest,
          [](MPI_Count skipped, const Layout::Piece& piece) { return skipped < piece.start; });
      const Layout::Piece& piece = *(after - 1);
      index = after - 1 - node->pieces.begin();
      rest -= piece.start;
      offset = piece.offset;
      body = piece.body;
      run = after->start - piece.start;
    }
    frames_[depth_++] = {node, at, index + 1};
    at = displaced(at, offset);
    node = body;
  }
  run_ = displaced(at, rest);
  run_bytes_ = run - rest;
}

// Enters the next run; there must be one.
void PackCursor::enter_run() {
  for (;;) {
    Frame& frame = frames_[depth_ - 1];
    const Layout& node = *frame.node;
    const Layout* body = nullptr;
    std::uintptr_t at = 0;
    MPI_Count bytes = 0;
    if (node.kind == Kind::loop) {
      if (frame.index == node.count) {
        --depth_;
        continue;
      }
      at = displaced(frame.base, frame.index * node.stride);
      body = node.body;
      bytes = node.block;
    } else {
      const auto* piece = &node.pieces[static_cast<std::size_t>(frame.index)];
      if (piece == &node.pieces.back()) { // the end mark
        --depth_;
        continue;
      }
      at = displaced(frame.base, piece->offset);
      body = piece->body;
      bytes = piece[1].start - piece->start;
    }
    ++frame.index;
    if (body) {
      frames_[depth_++] = {body, at, 0};
    } else {
      run_ = at;
      run_bytes_ = bytes;
      return;
    }
  }
}

// Copies the whole blocks or runs that follow in the innermost loop or list and fit in `bytes`.
// Returns the bytes copied: 0 if a run must be split or a level be entered or left.
template <bool packing>
std::size_t PackCursor::move_blocks(std::byte* stream, std::size_t bytes) {
  if (depth_ == 0) return 0;
  Frame& frame = frames_[depth_ - 1];
  const Layout& node = *frame.node;
  if (node.kind == Kind::loop) {
    if (node.body) return 0;
    const auto block = static_cast<std::size_t>(node.block);
    const MPI_Count blocks =
        std::min(node.count - frame.index, static_cast<MPI_Count>(bytes / block));
    copy_blocks<packing>(stream, displaced(frame.base, frame.index * node.stride), blocks, block,
                         node.stride);
    frame.index += blocks;
    return static_cast<std::size_t>(blocks) * block;
  }
  const auto* piece = &node.pieces[static_cast<std::size_t>(frame.index)];
  const auto* first = piece;
  const auto* end = &node.pieces.back();
  const MPI_Count limit = first->start + static_cast<MPI_Count>(bytes);
  for (; piece != end && !piece->body && piece[1].start <= limit; ++piece) {
    copy_run<packing>(stream + (piece->start - first->start), displaced(frame.base, piece->offset),
                      static_cast<std::size_t>(piece[1].start - piece->start));
  }
  frame.index += piece - first;
  return static_cast<std::size_t>(piece->start - first->start);
}

template <bool packing>
std::size_t PackCursor::move(std::byte* stream, std::size_t bytes) {
  const std::size_t todo = std::min(bytes, static_cast<std::size_t>(remaining()));
  std::size_t left = todo;
  while (left > 0) {
    std::size_t moved = 0;
    if (run_bytes_ == 0) moved = move_blocks<packing>(stream, left);
    if (moved == 0) {
      if (run_bytes_ == 0) enter_run();
      moved = std::min(left, static_cast<std::size_t>(run_bytes_));
      copy<packing>(stream, run_, moved);
      run_ += moved;
      run_bytes_ -= static_cast<MPI_Count>(moved);
    }
    stream += moved;
    left -= moved;
  }
  position_ += static_cast<MPI_Count>(todo);
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

} // namespace macadam::datatype
