// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/load.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace macadam::tools {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double used_by(int who) {
  rusage used{};
  getrusage(who, &used);
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double used_by_all() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft = 0, stolen = 0;
  file >> word >> user >> nice >> system >> idle >> wait >> interrupts >> soft >> stolen;
  if (!file || word != "cpu") return 0;
  return (user + nice + system + interrupts + soft + stolen) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

} // namespace

Load::Times Load::now() {
  const std::chrono::duration<double> clock = std::chrono::steady_clock::now().time_since_epoch();
  return {clock.count(), used_by_all(), used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN)};
}

double Load::of_others() const {
  const Times end = now();
  const double used = (end.all - begin_.all) - (end.own - begin_.own);
  return std::max(0.0, used / (end.clock - begin_.clock));
}

} // namespace macadam::tools
