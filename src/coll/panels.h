// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "engine/engine.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::coll {

class Board;

// Bytes in front of a slot's data.
inline constexpr std::size_t note_head = 16;
inline constexpr std::size_t chunk_head = 64;

// What is in a panel (board.h). Tests take small ones, of which every order of several laps can be
// gone through.
struct PanelShape {
  std::size_t note_bytes = 17 * 64 - note_head; // with the head, whole lines
  std::size_t chunk_bytes = std::size_t{64} << 10;
  std::uint32_t notes = 64; // powers of two, from 4 on
  std::uint32_t chunks = 4;

  static constexpr std::size_t front = 2 * 64;
  [[nodiscard]] std::size_t note_stride() const { return note_bytes + note_head; }
  // A line more, so that chunks do not all begin in the same place of the caches.
  [[nodiscard]] std::size_t chunk_stride() const { return chunk_head + chunk_bytes + 64; }
  [[nodiscard]] std::size_t first_chunk() const { return front + notes * note_stride(); }
  [[nodiscard]] std::size_t bytes() const { return first_chunk() + chunks * chunk_stride(); }
};

// Panels of this process that others may still read, of communicators that it has freed; and how
// much it has in all.
class Panels {
 public:
  explicit Panels(engine::Engine& engine);
  Panels(const Panels&) = delete;
  Panels& operator=(const Panels&) = delete;
  ~Panels();

  // Makes the words of a panel.
  void clear(std::byte* panel) const;
  // A cleared panel, in memory that neighbours map; null if there is none left, or this process has
  // as many as it may.
  std::byte* make(engine::RemoteMemory& name);
  // Nobody else has ever used it.
  void free(std::byte* panel) noexcept;
  // It is freed when all others have left the board.
  void retire(std::unique_ptr<Board> board) noexcept;

  void list(base::CounterList& list) const;
  std::uint64_t collectives = 0; // done on boards
  PanelShape shape;              // the same in all processes

 private:
  static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

  void free_left() noexcept;

  engine::Engine& engine_;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_most_ = 0;
  std::uint64_t refused_ = 0;
  std::vector<std::unique_ptr<Board>> retired_;
};

} // namespace macadam::coll
