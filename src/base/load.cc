// SPDX-License-Identifier: BSD-3-Clause
#include "base/load.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace macadam::base {

// The fourth word of loadavg: RUNNING/ALL threads.
unsigned running_threads() noexcept {
  const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 96> text{};
  const ssize_t read_bytes = read(file, text.data(), text.size() - 1);
  close(file);
  unsigned running = 0;
  if (read_bytes <= 0 || std::sscanf(text.data(), "%*s %*s %*s %u/", &running) != 1) return 0;
  return running;
}

unsigned online_cores() noexcept {
  return static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

} // namespace macadam::base
