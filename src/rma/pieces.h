// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma/window.h"

#include <cstddef>
#include <span>
#include <vector>

namespace macadam::rma {

// An access of many pieces, each of them contiguous on both sides, over a network whose requests
// name one block of the target. A request costs the network as much as a thousand bytes, so pieces
// that follow each other at the target share one: longer ones by a gather list, where the network
// takes them, short ones through a bounce buffer. There, what is written is packed first;
// what is read is read with the gaps between, and spread when it has come. (What is written has no
// such way: others may write the gaps meanwhile.)
class Window::Pieces {
 public:
  // `waiter` counts what is under way. All arguments outlive it. `around` is all of our memory that
  // the pieces lie in, if it may be registered as a whole; else of no bytes.
  Pieces(Window& window, Target& target, Direction direction, const Reach& to, Waiter& waiter,
         engine::Block around = {});
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  // `at` the target: from the place on. Throws as Window::put() does.
  void add(std::byte* ours, std::ptrdiff_t at, std::size_t bytes);
  // After the last one.
  void end();

 private:
  struct Piece {
    std::byte* ours;
    std::ptrdiff_t at;
    std::size_t bytes;
  };
  class Bounce;

  [[nodiscard]] bool follows(std::ptrdiff_t at, std::size_t bytes) const;
  void move(std::byte* ours, std::ptrdiff_t at, std::size_t bytes, Waiter& waiter);
  void move_each(std::span<const Piece> pieces);
  bool move_bounced(std::size_t span);
  void move_gathered();
  [[nodiscard]] bool gather(std::span<const Piece> pieces);

  Window& window_;
  Target& target_;
  const Direction direction_;
  const Reach& to_;
  Waiter& waiter_;
  const engine::Block around_;
  const std::size_t most_gathered_; // in one request; 1: none
  std::vector<Piece> kept_;         // that may share a request
  std::ptrdiff_t kept_end_ = 0;
  std::size_t kept_bytes_ = 0;
};

} // namespace macadam::rma
