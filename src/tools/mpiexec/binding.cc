// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/binding.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

namespace macadam::tools {
namespace {

int read_number(const std::string& path, int otherwise) {
  std::ifstream file(path);
  int number = otherwise;
  file >> number;
  return file ? number : otherwise;
}

} // namespace

// Two small files for each hardware thread: a topology library would take longer to load than the
// whole job takes to start.
std::vector<cpu_set_t> usable_core_sets() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0)
    throw std::runtime_error(std::string("reading the affinity mask failed: ") +
                             std::strerror(errno));
  std::vector<cpu_set_t> cores;
  std::map<std::pair<int, int>, std::size_t> place; // (package, core) to its index in `cores`
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    // Where the system hides its topology every thread is taken for a core.
    const std::pair core{read_number(folder + "physical_package_id", 0),
                         read_number(folder + "core_id", CPU_SETSIZE + cpu)};
    const auto [found, is_new] = place.try_emplace(core, cores.size());
    if (is_new) CPU_ZERO(&cores.emplace_back());
    CPU_SET(cpu, &cores[found->second]);
  }
  return cores;
}

} // namespace macadam::tools
