// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

namespace macadam::base {

// The numbers of the hardware threads that this process may run on, ascending; none if the system
// does not tell.
std::vector<unsigned> usable_threads();

} // namespace macadam::base
