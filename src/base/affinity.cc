// SPDX-License-Identifier: BSD-3-Clause
#include "base/affinity.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sched.h>

namespace macadam::base {
namespace {

// Hardware threads as the kernel has them, with room for numbers below `room`; a cpu_set_t by
// itself has it for 1,024. Empty at first.
class Mask {
 public:
  explicit Mask(unsigned room)
      : bytes(CPU_ALLOC_SIZE(room)), set_(CPU_ALLOC(room), [](cpu_set_t* s) { CPU_FREE(s); }) {
    CPU_ZERO_S(bytes, get());
  }
  [[nodiscard]] cpu_set_t* get() const { return set_.get(); }
  const std::size_t bytes;

 private:
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set_;
};

} // namespace

Threads usable_threads() {
  Threads threads;
  // The kernel refuses a mask shorter than its own; 1 << 16 hardware threads are enough for long.
  for (unsigned room = CPU_SETSIZE; room <= 1 << 16; room *= 4) {
    const Mask mask(room);
    if (sched_getaffinity(0, mask.bytes, mask.get()) != 0) continue;
    for (unsigned thread = 0; thread < room; ++thread)
      if (CPU_ISSET_S(thread, mask.bytes, mask.get())) threads.push_back(thread);
    break;
  }
  return threads;
}

void run_on(const Threads& threads) {
  if (threads.empty()) return;
  const Mask mask(*std::ranges::max_element(threads) + 1);
  for (const unsigned thread : threads)
    CPU_SET_S(thread, mask.bytes, mask.get());
  sched_setaffinity(0, mask.bytes, mask.get());
}

} // namespace macadam::base
