// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/event.h"
#include "engine/transport.h"

#include <atomic>
#include <thread>

namespace macadam::net::ofi {

// How a process sleeps until something arrives: in sleep(), or, if it has another network where it
// sleeps, there, and a thread of ours that only sleeps too wakes it. The thread calls nothing of
// libfabric.
class Waiting {
 public:
  // `descriptor` is readable when something has arrived; -1: nothing tells. `sleeper` may be null.
  // Throws base::Error if there is no thread, or no descriptor, to be had.
  Waiting(int descriptor, engine::Transport* sleeper);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  // Until the descriptor is readable, until wake(), or for so long. Any thread.
  void sleep(unsigned longest_us);
  void wake() const { wake_.ring(); }
  // The sleeper is woken once when the descriptor becomes readable.
  void watch();

 private:
  void run();

  const int descriptor_;
  engine::Transport* const sleeper_;
  const base::Event wake_;
  const base::Event turn_; // of the thread: to watch, or to end
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

} // namespace macadam::net::ofi
