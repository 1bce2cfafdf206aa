// SPDX-License-Identifier: BSD-3-Clause
// mpiexec for a job on several machines, started once on each:
//
//   mpiexec_node --nodes 2 --node 0 --board FOLDER -n 2 ./program arguments
//
// FOLDER is new or empty, has mode 0700, and is seen by all of them. Ranks are numbered node by
// node. What follows the folder is mpiexec's own command line, for the ranks of this machine; each
// prints reports of its own ranks.
#include "board.h"
#include "boot/machine.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/supervisor.h"

#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace macadam;

constexpr std::chrono::seconds time_to_come{120};

std::uint32_t number(std::string_view option, std::string_view text) {
  std::uint32_t value = 0;
  const auto end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end || text.empty())
    throw std::runtime_error(std::string(option) + " is \"" + std::string(text) +
                             "\", a number is needed");
  return value;
}

} // namespace

int main(int argc, char** argv) {
  try {
    constexpr int own = 6; // words before mpiexec's
    if (argc <= own || std::string_view(argv[1]) != "--nodes" ||
        std::string_view(argv[3]) != "--node" || std::string_view(argv[5]) != "--board")
      throw std::runtime_error(
          "needed: --nodes COUNT --node NUMBER --board FOLDER, then mpiexec's options");
    const test::Board::Place place{argv[6], number(argv[1], argv[2]), number(argv[3], argv[4])};
    argv[own] = argv[0];
    const tools::Options options = tools::read_options(argc - own, argv + own);
    test::Board board(place, {boot::host_name(), static_cast<std::uint32_t>(options.ranks())},
                      time_to_come);
    return tools::Supervisor(options, board.make_job(boot::usable_cores()), &board).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpiexec: %s\n", error.what());
    return 2;
  }
}
