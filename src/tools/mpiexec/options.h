// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "boot/spawn_request.h"
#include "tools/mpiexec/hosts.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace macadam::tools {

using Variable = std::pair<std::string, std::string>; // name, value

// What of the machine a rank may run on.
enum class Binding { none, core, l3cache, numa, socket };

// -outfile-pattern, -errfile-pattern: where the ranks' output goes; empty: where mpiexec's goes. %r
// stands for the rank, %h for the host, %% for a %.
struct OutputFiles {
  std::string out, error;
};

// How ranks go to machines: the slots of one and then those of the next, or one to each in turn.
enum class Order { slot, node };

// One program of the command line; several are separated by ":".
struct Program {
  int ranks = 0;
  std::vector<std::string> command;  // the program and its arguments, never empty
  std::vector<Variable> environment; // -env: of this program's ranks only
  std::string folder;                // -wdir; empty: where mpiexec runs
  std::vector<std::string> path;     // -path: looked through for the program before PATH
  std::string process_set;           // -pset; empty: these ranks have no name
  std::vector<Host> hosts;           // -host, -hostfile; empty: this machine
  int per_host = 0;                  // -ppn: ranks on each host; 0: as its slots say
  Order map_by = Order::slot;        // which machine gets how many
  std::optional<Order> rank_by;      // which of these ranks is where; none: as they were mapped
};

// How many ranks each of them has.
std::vector<int> counts_of(const std::vector<Program>& programs);

struct Options {
  std::vector<Program> programs;
  std::vector<Variable> environment; // -genv, -x: of all ranks
  bool is_mpich_abi = false;         // -abi mpich
  bool label = false;
  bool verbose = false;
  double timeout_seconds = 0; // 0: none
  Binding binding = Binding::none;
  bool report_bindings = false;
  OutputFiles output_files;
  int universe_size = 0; // -usize; 0: as many as there are cores
  bool display_map = false;
  std::vector<std::string> starter; // of the batch system that names the hosts (Allocation)
  double silence_seconds = 1.75;    // then a machine that says nothing is gone

  [[nodiscard]] int ranks() const;
  // What -pset has named. Ranks are numbered program by program.
  [[nodiscard]] std::vector<boot::NamedRanks> process_sets() const;
};

using boot::most_ranks;

// Reads the command line. Prints help, the version or what is wrong, and leaves the process, when
// there is nothing to run. Options for the whole job may stand before any of the programs; those
// about machines hold for the programs behind them too.
Options read_options(int argc, char** argv);

} // namespace macadam::tools
