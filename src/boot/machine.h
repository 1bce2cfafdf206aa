// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::boot {

// Hardware threads that this process and its children may use: those in its affinity mask, fewer if
// a control group (a container's CPU limit) grants less time. At least 1.
unsigned usable_cores();

// The host's name as users know it.
std::string host_name();

} // namespace macadam::boot
