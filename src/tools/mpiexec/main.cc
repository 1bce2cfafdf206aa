// SPDX-License-Identifier: BSD-3-Clause
#include "boot/limits.h"
#include "boot/lone_server.h"
#include "boot/machine.h"
#include "tools/mpiexec/branch.h"
#include "tools/mpiexec/cluster.h"
#include "tools/mpiexec/links.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/placement.h"
#include "tools/mpiexec/proxy.h"
#include "tools/mpiexec/ranks.h"
#include "tools/mpiexec/serve.h"
#include "tools/mpiexec/supervisor.h"

#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

int main(int argc, char** argv) {
  using namespace macadam::tools;
  using namespace macadam::boot;
  try {
    if (argc == 3 && std::string_view(argv[1]) == serve_word) return serve_lone_program(argv[2]);
    if (argc == 2 && std::string_view(argv[1]) == proxy_word) return run_proxy();
    if (argc == 2 && std::string_view(argv[1]) == branch_word) return run_branch();
    if (argc == 2 && std::string_view(argv[1]) == link_word) return run_link();
    const Options options = read_options(argc, argv);
    Placement placement = place(options);
    if (options.display_map) std::fputs(placement.map().c_str(), stderr);
    const bool is_here = placement.hosts == std::vector{host_name()};
    // A machine has two pipes here, as a rank whose output is labelled.
    set_needs(needs_of(is_here ? options.ranks() : static_cast<int>(placement.hosts.size()),
                       !is_here || options.label));
    if (!is_here) return Cluster(options, std::move(placement)).run();
    const auto ranks = static_cast<std::uint32_t>(options.ranks());
    return Supervisor(options, JobMemory::create({{host_name(), ranks}}, 0, usable_cores(),
                                                 options.process_sets()))
        .run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpiexec: %s\n", error.what());
    return 2;
  }
}
