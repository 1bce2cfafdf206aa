// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

namespace macadam::base {

// Hardware threads by their numbers, ascending.
using Threads = std::vector<unsigned>;

// Those that this process may run on; none if the system does not tell.
Threads usable_threads();

// This process, and those that it starts, run on these from now on. What the system refuses stays
// as it was.
void run_on(const Threads& threads);

} // namespace macadam::base
