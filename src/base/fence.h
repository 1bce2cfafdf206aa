// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace macadam::base {

// The thread sanitizer knows no fences; what this one orders lies between processes, which it does
// not watch anyway.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
// What this process has stored is seen by others before what it loads later.
inline void full_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
// All but stores before later loads, which costs nothing on most processors.
inline void ordering_fence() {
  std::atomic_thread_fence(std::memory_order_acq_rel);
}
#pragma GCC diagnostic pop

} // namespace macadam::base
