// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::tools {

// Runs a program (argument 0 is its path) to its end and returns what it wrote to its standard
// output; its standard error is ours. Throws std::runtime_error if it cannot be started or fails.
std::string output_of(const std::vector<std::string>& arguments);

} // namespace macadam::tools
