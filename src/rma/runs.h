// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace macadam::rma {

// Pieces of one length at equal distances: the first at a place of a rank of the window.
struct Run {
  std::uint64_t place;
  std::int64_t stride;
  std::uint32_t bytes; // of each
  std::uint32_t count;
};

// Pieces in the order in which their data are packed, as few runs.
class Runs {
 public:
  void add(std::uint64_t place, std::size_t bytes) {
    bytes_ += bytes;
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if (last.count == 1 && place == last.place + last.bytes) { // one piece with it
        last.bytes += static_cast<std::uint32_t>(bytes);
        return;
      }
      if (last.bytes == bytes) {
        if (last.count == 1) last.stride = static_cast<std::int64_t>(place - last.place);
        if (place == end_of(last)) {
          ++last.count;
          return;
        }
      }
    }
    runs_.push_back({place, 0, static_cast<std::uint32_t>(bytes), 1});
  }
  void add(const Run& run) {
    if (run.count == 1) return add(run.place, run.bytes);
    bytes_ += std::size_t{run.bytes} * run.count;
    Run* const last = runs_.empty() ? nullptr : &runs_.back();
    if (last != nullptr && last->count > 1 && last->bytes == run.bytes &&
        last->stride == run.stride && run.place == end_of(*last))
      last->count += run.count;
    else
      runs_.push_back(run);
  }
  void add(const std::byte* memory, std::size_t bytes) {
    add(reinterpret_cast<std::uint64_t>(memory), bytes);
  }
  void clear() {
    runs_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; } // of all pieces
  [[nodiscard]] bool is_one_piece() const { return size() == 1 && runs_.front().count == 1; }
  [[nodiscard]] std::span<const Run> all() const { return runs_; }

 private:
  // Where its next piece would be.
  static std::uint64_t end_of(const Run& run) {
    return run.place + run.count * static_cast<std::uint64_t>(run.stride);
  }

  std::vector<Run> runs_;
  std::size_t bytes_ = 0;
};

// Runs as they come in a message, where they need not lie aligned, of memory that places count
// from; null: places are addresses.
class RunsHere {
 public:
  RunsHere(std::byte* memory, const std::byte* runs, std::size_t count)
      : memory_(memory), runs_(runs), count_(count) {}
  explicit RunsHere(const Runs& of_addresses)
      : RunsHere(nullptr, std::as_bytes(of_addresses.all()).data(), of_addresses.size()) {}

  // Calls visit(memory, where it is packed, bytes) for each piece.
  template <class Visit>
  void for_each_piece(Visit&& visit) const {
    for_each_run([&](const Run& run, std::byte* there, std::size_t packed) {
      switch (run.bytes) {
      case 1:
        return visit_pieces(run, there, packed, 1, visit);
      case 2:
        return visit_pieces(run, there, packed, 2, visit);
      case 4:
        return visit_pieces(run, there, packed, 4, visit);
      case 8:
        return visit_pieces(run, there, packed, 8, visit);
      default:
        return visit_pieces(run, there, packed, run.bytes, visit);
      }
    });
  }
  // The pieces' data to a packed stream, and back.
  void pack(std::byte* packed) const {
    for_each_piece([&](const std::byte* there, std::size_t at, std::size_t bytes) {
      base::copy(packed + at, there, bytes);
    });
  }
  void unpack(const std::byte* packed) const {
    for_each_piece([&](std::byte* there, std::size_t at, std::size_t bytes) {
      base::copy(there, packed + at, bytes);
    });
  }
  [[nodiscard]] std::size_t pieces() const {
    std::size_t pieces = 0;
    for_each_run([&](const Run& run, std::byte*, std::size_t) { pieces += run.count; });
    return pieces;
  }
  // Whether all pieces begin at a multiple of `alignment`.
  [[nodiscard]] bool lie_aligned(std::size_t alignment) const {
    std::uint64_t bits = 0;
    for_each_run([&](const Run& run, const std::byte* there, std::size_t) {
      bits |= reinterpret_cast<std::uint64_t>(there) | static_cast<std::uint64_t>(run.stride);
    });
    return bits % alignment == 0;
  }

 private:
  // Calls visit(run, memory of its first piece, where that is packed).
  template <class Visit>
  void for_each_run(Visit&& visit) const {
    std::size_t packed = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      Run run;
      std::memcpy(&run, runs_ + i * sizeof run, sizeof run);
      visit(run, memory_ != nullptr ? memory_ + run.place : reinterpret_cast<std::byte*>(run.place),
            packed);
      packed += std::size_t{run.bytes} * run.count;
    }
  }
  // `bytes`, of a piece, is a constant in the callers that matter, so that to copy one is a load
  // and a store.
  template <class Visit>
  [[gnu::always_inline]] static inline void visit_pieces(const Run& run, std::byte* there,
                                                         std::size_t packed, std::size_t bytes,
                                                         Visit& visit) {
    if (bytes <= base::few_bytes) base::touched(bytes * run.count);
    for (std::uint32_t piece = 0; piece < run.count; ++piece) {
      visit(there, packed, bytes);
      packed += bytes;
      there += run.stride;
    }
  }

  std::byte* memory_;
  const std::byte* runs_;
  std::size_t count_;
};

// Goes through the pieces of runs, in parts.
class PieceWalk {
 public:
  explicit PieceWalk(const Runs& of) : runs_(of.all()) {}
  // Bytes of the present piece that are left; 0: at the end.
  [[nodiscard]] std::size_t left() const { return runs_.empty() ? 0 : runs_.front().bytes - done_; }
  // The place of the next bytes, at most left() of them.
  std::uint64_t take(std::size_t bytes) {
    const Run& run = runs_.front();
    const std::uint64_t place = run.place + piece_ * static_cast<std::uint64_t>(run.stride) + done_;
    done_ += bytes;
    if (done_ < run.bytes) return place;
    done_ = 0;
    if (++piece_ < run.count) return place;
    piece_ = 0;
    runs_ = runs_.subspan(1);
    return place;
  }

 private:
  std::span<const Run> runs_;
  std::uint32_t piece_ = 0;
  std::size_t done_ = 0; // of it
};

} // namespace macadam::rma
