// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rma/messages.h"
#include "rma/window.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace macadam::rma {

// An access of many short pieces that are apart at the target, as a column of a matrix is, in an
// epoch that the target ends too (a fence, or post and wait). A network's requests, and the
// kernel's copies, cost as much for each piece as hundreds of bytes; so the pieces travel together
// in messages, and the target, which makes progress while it waits for the epoch's end, puts them
// to their places or collects them. Those for which there is no room until it comes go one by one.
class Window::Scattered {
 public:
  // Whether an access is faster so than by the network. The target ends the epoch too.
  static bool suits(const Target& target, Direction direction, const Place& place);

  // `waiter` counts what is under way. All arguments outlive it.
  Scattered(Window& window, Target& target, Direction direction, const Reach& to, Waiter& waiter);
  Scattered(const Scattered&) = delete;
  Scattered& operator=(const Scattered&) = delete;

  // `at` the target: from the place on. Throws as Window::put() does.
  void add(std::byte* ours, std::ptrdiff_t at, std::size_t bytes);
  // After the last one.
  void end();

 private:
  [[nodiscard]] bool is_ready() const;
  void move(std::byte* ours, std::ptrdiff_t at, std::size_t bytes);
  void move_each();
  void put();
  void get();

  Window& window_;
  Target& target_;
  const Direction direction_;
  const Reach& to_;
  Waiter& waiter_;
  Runs runs_; // at the target
  Runs ours_;
};

} // namespace macadam::rma
