// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma/window.h"

#include <cstddef>
#include <vector>

namespace macadam::rma {

// An access of many pieces, each of them contiguous on both sides, over a network that moves one
// block at a time. A request costs the network as much as a thousand bytes, so short pieces that
// follow each other at the target travel together, through memory of the library: what is written
// is packed there first; what is read is read with the gaps between, and spread when it has come.
// (What is written has no such way: others may write the gaps meanwhile.)
class Window::Pieces {
 public:
  // `waiter` counts what is under way. All arguments outlive it.
  Pieces(Window& window, Target& target, Direction direction, const Reach& to, Waiter& waiter)
      : window_(window), target_(target), direction_(direction), to_(to), waiter_(waiter) {}
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
  class Together;

  [[nodiscard]] bool follows(std::ptrdiff_t at, std::size_t bytes) const;
  void move(std::byte* ours, std::ptrdiff_t at, std::size_t bytes, Waiter& waiter);

  Window& window_;
  Target& target_;
  const Direction direction_;
  const Reach& to_;
  Waiter& waiter_;
  std::vector<Piece> kept_; // short ones that are to travel together
  std::ptrdiff_t kept_end_ = 0;
};

} // namespace macadam::rma
