// SPDX-License-Identifier: BSD-3-Clause
#include "boot/machine.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/supervisor.h"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  using namespace macadam::tools;
  using namespace macadam::boot;
  try {
    const Options options = read_options(argc, argv);
    const auto ranks = static_cast<std::uint32_t>(options.ranks());
    return Supervisor(options, JobMemory::create({{host_name(), ranks}}, 0, usable_cores(),
                                                 options.process_sets()))
        .run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpiexec: %s\n", error.what());
    return 2;
  }
}
