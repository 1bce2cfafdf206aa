// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::tools {

// What a user says of machines, in the two forms that MPI launchers share: `name,name:4` after
// -host, and a file with a line `name`, `name:4` or `name slots=4` for each. Returns the sum of
// slots, one where none are given. Throws std::runtime_error for what is written otherwise, and for
// every machine that is not this one.
int slots_of_hosts(const std::string& list);
int slots_of_host_file(const std::string& path);

} // namespace macadam::tools
