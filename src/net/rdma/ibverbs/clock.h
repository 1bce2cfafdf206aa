// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ctime>

namespace macadam::net::rdma::ibverbs {

// On the monotonic clock.
inline double seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace macadam::net::rdma::ibverbs
