// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <thread>

namespace macadam::net::shm::test {

// Of a thread that looks for what another one does: it may have to give it the core, but not each
// time. Where other programs want the cores, a yield costs a slice of the scheduler's,
// milliseconds.
class Patience {
 public:
  void wait() {
    if (++fruitless_ % looks_per_yield == 0) std::this_thread::yield();
  }

 private:
  static constexpr unsigned looks_per_yield = 100;
  unsigned fruitless_ = 0;
};

} // namespace macadam::net::shm::test
