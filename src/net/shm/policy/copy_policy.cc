// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/policy/copy_policy.h"

namespace macadam::net::shm {

CopyPolicy::Next CopyPolicy::came(std::size_t bytes, CopyMethod method, double began,
                                  System& system) {
  CopyCost& copy_cost = costs_[size_class(bytes)];
  double now = 0;
  if (began > 0) {
    now = system.now();
    if (const auto cost = copy_cost.cost(method, now, now - began))
      selector_.record(bytes, method, *cost);
  }
  const auto [next, timed] = selector_.next(bytes);
  if (timed && now == 0) now = system.now();
  copy_cost.ended(method, timed, now);
  return {next, timed};
}

} // namespace macadam::net::shm
