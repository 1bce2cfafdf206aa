// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/silence.h"

#include "base/load.h"

#include <algorithm>
#include <cmath>

namespace macadam::tools {
namespace {

int beats_within(double seconds) {
  return static_cast<int>(std::ceil(std::chrono::duration<double>(seconds) / Silence::interval));
}

} // namespace

// This process is one that runs, and a job may well have a rank for each core.
bool is_machine_busy() {
  const unsigned running = base::running_threads();
  return running == 0 || running > base::online_cores() + 1;
}

Silence::Silence(double seconds)
    : least_(beats_within(seconds)), most_(std::max(least_, beats_within(10))), allowed_(most_) {}

bool Silence::count(bool busy_here) {
  allowed_ = busy_here || is_other_busy_ ? most_ : least_;
  return ++silent_ > allowed_;
}

} // namespace macadam::tools
