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
#include <fcntl.h>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// Standard streams that mpiexec was started without: else pipes and sockets of its own would take
// their numbers, and what is meant for a stream would go there.
void open_standard_streams() {
  for (const int stream : {0, 1, 2})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR); // gets the lowest number
}

} // namespace

int main(int argc, char** argv) {
  using namespace macadam::tools;
  using namespace macadam::boot;
  open_standard_streams();
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
    JobMemory memory =
        JobMemory::create({{host_name(), ranks}}, 0, usable_cores(), options.process_sets());
    number_programs(memory, counts_of(options.programs));
    return Supervisor(options, std::move(memory)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpiexec: %s\n", error.what());
    return 2;
  }
}
