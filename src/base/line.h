// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fstream>
#include <string>

namespace macadam::base {

// The first line of a file, as the kernel tells one thing in each of those below /sys and /proc.
// Empty if there is no such file.
inline std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

} // namespace macadam::base
