// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/event.h"
#include "engine/transport.h"

#include <atomic>
#include <cstdint>
#include <thread>

namespace macadam::net::ofi {

// What a process does while its program computes.
class Attended {
 public:
  // Polls of the program so far; any thread.
  [[nodiscard]] virtual std::uint64_t polls() const noexcept = 0;
  // Serves what peers want of this process's memory; on the progress thread. False if there was
  // nothing that it could do.
  virtual bool attend() noexcept = 0;

 protected:
  ~Attended() = default;
};

// How a process sleeps until something arrives, in sleep(); and the progress thread, which sleeps
// too, and wakes to do two things: to end the sleep of a process that sleeps on another network,
// and to attend to what arrives while nobody polls.
class Waiting {
 public:
  // `descriptor` is readable when something has arrived; -1: nothing tells, and there is no thread.
  // Unless it `tells_all`, the thread also looks now and then. `sleeper` may be null.
  Waiting(int descriptor, bool tells_all, Attended& attended, engine::Transport* sleeper);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { stop(); }

  // The thread, once all is there that it attends to. Throws base::Error if there is none to be
  // had.
  void start();
  void stop();

  // Until the descriptor is readable, until wake(), or for so long. Any thread.
  void sleep(unsigned longest_us);
  void wake() const { wake_.ring(); }
  // The sleeper is woken once when the descriptor becomes readable.
  void watch();

 private:
  void arm();
  bool wait(int longest_ms);
  void run();

  const int descriptor_;
  const bool tells_all_;
  Attended& attended_;
  engine::Transport* const sleeper_;
  const base::Event wake_;
  const base::Event end_; // of the thread
  int watched_ = -1;      // what the thread waits for
  std::atomic<bool> stop_ = false;
  std::atomic<bool> watch_ = false;
  std::thread thread_;
};

} // namespace macadam::net::ofi
