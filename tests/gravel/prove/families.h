// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gravel/prove/program.h"

#include <vector>

namespace macadam::gravel::prove {

// The programs that are proved, each under every condition that fits: docs/gravel.md tells what
// they are together.
std::vector<Program> all_programs();

// By themselves, under default conditions.
Program consumer_write(int rounds);
Program consumer_writes_in_flight();
Program producer_write();
Program producer_read();
Program pipeline();
Program promised_writes(int rounds);
Program strips();

} // namespace macadam::gravel::prove
