// SPDX-License-Identifier: BSD-3-Clause
#include "mem/resident.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace macadam::mem {

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/smaps");
  std::size_t kibibytes = 0;
  bool of_device = false;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    if (line[0] < 'A' || line[0] > 'Z') { // addresses: the next mapping
      of_device = line.find("/dev/infiniband/") != std::string::npos;
    } else if (line.starts_with(of_device ? "Rss:" : "Anonymous:")) {
      kibibytes += std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
    }
  }
  return kibibytes << 10;
}

} // namespace macadam::mem
