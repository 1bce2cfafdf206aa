// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"

#include <string>

namespace macadam::tools {

// The part of `macadam info` on RDMA: the port that would be used, by which address, with which
// limits; and of each other port why not. Opens the adapters of this machine for the moment.
std::string rdma_section(const base::Settings& settings);

// The part on libfabric: what it would be asked for, for a job on several machines.
std::string ofi_section(const base::Settings& settings);

} // namespace macadam::tools
