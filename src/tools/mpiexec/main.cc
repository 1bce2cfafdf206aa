// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/supervisor.h"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  using namespace macadam::tools;
  try {
    const Options options = read_options(argc, argv);
    return Supervisor(options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpiexec: %s\n", error.what());
    return 2;
  }
}
