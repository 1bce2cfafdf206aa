// SPDX-License-Identifier: BSD-3-Clause
#include "base/affinity.h"

#include <cstddef>
#include <memory>
#include <sched.h>

namespace macadam::base {

std::vector<unsigned> usable_threads() {
  std::vector<unsigned> threads;
  // The kernel refuses a mask shorter than its own; 1 << 16 hardware threads are enough for long.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 16; cpus *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set.get()) != 0) continue;
    for (unsigned cpu = 0; cpu < static_cast<unsigned>(cpus); ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) threads.push_back(cpu);
    break;
  }
  return threads;
}

} // namespace macadam::base
