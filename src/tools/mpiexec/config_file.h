// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace macadam::tools {

// The arguments with each `-configfile FILE` that stands before a program's name replaced by what
// the file says: a line for each program, with its options, as they would stand between the colons
// of a command line, and going on in the next one behind a \. Empty lines and those that begin
// with # are passed over; words in quotes are one. Throws std::runtime_error.
std::vector<std::string> expand_config_files(const std::vector<std::string>& arguments);

} // namespace macadam::tools
