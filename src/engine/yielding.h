// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace macadam::engine {

// How long a wait for a network yields its core before it sleeps, which takes longer to be woken
// from than most waits last; but where processes share cores, a core that one of them polls on is
// missed by the others, and by the kernel's part of the network. Any thread.
class Yielding {
 public:
  // `spin_us`: microseconds, as the user says; -1: decide.
  Yielding(std::int64_t spin_us, bool shares_cores)
      : seconds_(spin_us >= 0   ? 1e-6 * static_cast<double>(spin_us)
                 : shares_cores ? 20e-6
                                : 1e-3) {}

  // The wait yields without a look at the clock, which may be a system call: most end sooner.
  // `fruitless`: polls in a row, as for Transport::idle().
  [[nodiscard]] bool is_blind(unsigned fruitless) const {
    return fruitless < blind_yields && seconds_ > 0;
  }
  // Whether it yields after that. `now`: seconds; the first one that is told begins the time.
  [[nodiscard]] bool goes_on(unsigned fruitless, double now) {
    if (fruitless <= blind_yields) since_.store(now, std::memory_order_relaxed);
    return now - since_.load(std::memory_order_relaxed) < seconds_;
  }

 private:
  static constexpr unsigned blind_yields = 8;
  const double seconds_;
  std::atomic<double> since_ = 0;
};

} // namespace macadam::engine
