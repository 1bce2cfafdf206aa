// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/affinity.h"
#include "tools/mpiexec/options.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace macadam::tools {

// Where each of `ranks` ranks of this machine may run; none if they are not bound. With
// Binding::core each has a core of its own. Of the larger parts of a machine each is shared by as
// many ranks as any other, neighbours together. Respects the affinity mask, and with it containers
// and batch systems. Throws std::runtime_error if there are not enough cores, or the system does
// not tell.
std::vector<base::Threads> bind_ranks(Binding binding, int ranks);

// What --report-bindings says: a line for each of these ranks of this machine. `sets` as above;
// `where` is " on host a", or empty.
std::string describe_bindings(const std::vector<base::Threads>& sets,
                              std::span<const std::uint32_t> ranks, const std::string& where = "");

} // namespace macadam::tools
