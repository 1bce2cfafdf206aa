// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <cstdint>
#include <vector>

namespace macadam::boot::pmix {

// The process sets that the launcher has named (prterun --pset), as far as processes of this job
// are in them: `job` has `size` ranks. None if the server does not tell.
std::vector<NamedRanks> sets_of(const char* job, std::uint32_t size);

} // namespace macadam::boot::pmix
