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

// Panels of this process that others may still read, of communicators that it has freed; and how
// much it has in all.
class Panels {
 public:
  explicit Panels(engine::Engine& engine);
  Panels(const Panels&) = delete;
  Panels& operator=(const Panels&) = delete;
  ~Panels();

  // A cleared panel, in memory that neighbours map; null if there is none left, or this process has
  // as many as it may.
  std::byte* make(engine::RemoteMemory& name);
  // Nobody else has ever used it.
  void free(std::byte* panel) noexcept;
  // It is freed when all others have left the board.
  void retire(std::unique_ptr<Board> board) noexcept;

  void list(base::CounterList& list) const;
  std::uint64_t collectives = 0; // done on boards

 private:
  static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

  void free_left() noexcept;

  engine::Engine& engine_;
  std::uint64_t bytes_ = 0;
  std::uint64_t refused_ = 0;
  std::vector<std::unique_ptr<Board>> retired_;
};

} // namespace macadam::coll
