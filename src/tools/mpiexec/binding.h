// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace macadam::tools {

// The cores that this process may use, each as the set of its usable hardware threads, in the order
// of their first thread. Respects the affinity mask, and with it containers and batch systems.
// Throws std::runtime_error if the system does not tell.
std::vector<cpu_set_t> usable_core_sets();

} // namespace macadam::tools
