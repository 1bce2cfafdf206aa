// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/foreign_options.h"

#include <array>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>

namespace macadam::tools {
namespace {

// Of MPICH's and Intel MPI's mpiexec, Open MPI's mpirun and Slurm's srun.
struct Idle {
  const char* names;
  int values; // that follow it
  const char* why;
};

constexpr const char* parameter_options = "--mca,--gmca,--pmca,--omca,--prtemca,--pmixmca";

constexpr const char* memory_kinds_option = "--memory-alloc-kinds";

constexpr std::array idle{
    Idle{"--oversubscribe,--nooversubscribe,--overcommit,-O,--overlap,--exact", 0,
         "there may always be more ranks than cores"},
    Idle{"--allow-run-as-root", 0, "root may always"},
    Idle{parameter_options, 2,
         "parameters of Open MPI mean nothing to Macadam; \"macadam info\" lists its settings"},
    Idle{
        "--am,--tune", 1,
        "parameters of other libraries mean nothing to Macadam; \"macadam tune\" measures its own"},
    Idle{"--envall,--genvall", 0, "all variables are always passed on"},
    Idle{"--quiet,-q", 0, "mpiexec prints nothing unasked"},
    Idle{"--launcher,--bootstrap,--rmk,--mpi,--personality", 1,
         "mpiexec sees in which job it runs; MACADAM_SSH names what starts it elsewhere"},
    Idle{"--disable-hostname-propagation,--enable-x,--disable-x,--hetero,--hetero-nodes,--noconf",
         0, "there is nothing of the kind"},
    Idle{"--localhost,--pmi-port,--topolib,--demux,--nameserver,--stream-buffering", 1,
         "there is nothing of the kind"},
    Idle{"--leave-session-attached,--debug-daemons", 0, "there are no daemons"},
    Idle{"--tmpdir,--localroot", 1, "there are no files"},
    Idle{"--use-hwthread-cpus,--use-hwthreads", 0, "a core is a hardware thread here"},
    Idle{"--cpus-per-proc,--cpus-per-rank,--cpus-per-task", 1,
         "ranks run on any core unless --bind-to says otherwise, and their threads with them"},
    Idle{"--prefix", 1, "the library is found by where mpiexec is"},
    Idle{"--get-stack-traces,--report-state-on-timeout", 0, "the page of --timeout has them"},
    Idle{"--kill-on-bad-exit,-K", 0, "a rank that fails always ends the job"},
    Idle{"--print-all-exitcodes,--silent-abort", 0, "a line names the rank that failed first"},
    Idle{"--unbuffered,-u", 0, "output is passed on at once"},
    Idle{"--job-name,-J", 1, "jobs have no names"},
    // Of the MPI standard.
    Idle{memory_kinds_option, 1, "all ranks have the kinds mpi and system, and no others"},
};

struct Remedy {
  std::string_view names; // with a space behind each
  std::string_view text;
};

constexpr std::array remedies{
    // Of the MPI standard.
    Remedy{"--configfile ", "alone and in front, mpiexec -configfile FILE"},
    Remedy{"--file --app --multi-prog ", "mpiexec -configfile FILE, alone"},
    Remedy{"--soft ", "-n COUNT: all of them are started, or none"},
    Remedy{"--arch ", "-host NAME,... names the machines"},
    Remedy{"--initial-errhandler ", "MPI_Comm_set_errhandler in the program"},
    // Machines, and where ranks are.
    Remedy{"--rr --bynode --cyclic ", "--map-by node"},
    Remedy{"--byslot --bycore ", "nothing, or --map-by slot"},
    Remedy{"--grr ", "-ppn COUNT"},
    Remedy{"--pernode ", "-ppn 1"},
    Remedy{"--npersocket ", "--bind-to socket, with -ppn COUNT for all sockets of a machine"},
    Remedy{"--rankfile --rf --distribution ",
           "-host or -hostfile in the order wanted, --map-by, --rank-by and --bind-to"},
    Remedy{"--machine --default-hostfile --add-hostfile --hosts-group ", "-hostfile FILE"},
    Remedy{"--nolocal --skip-launch-node --order-nodes --nodelist -w --add-host --exclude -X ",
           "-host NAME,... names the machines, in their order"},
    Remedy{"--nodes ", "-host NAME,... names the machines, -ppn COUNT the ranks of each"},
    Remedy{"--display --display-allocation --display-devel-map --print-rank-map --do-not-launch ",
           "--display-map, --report-bindings"},
    Remedy{"--bind-to-core --cpu-bind --binding --bind-to-none --bind-to-socket ",
           "--bind-to none, core, l3cache, numa or socket"},
    Remedy{"--cpu-set --cpu-list ", "taskset -c LIST mpiexec ..."},
    Remedy{"--membind --mem-bind ", "numactl in front of the program: mpiexec -n 4 numactl ..."},
    Remedy{"--iface ", "MACADAM_NET_INTERFACE=NAME"},
    Remedy{"--launcher-exec --bootstrap-exec --launch-agent ",
           "MACADAM_SSH=COMMAND names what starts a command on another machine"},
    Remedy{"--dvm --dvm-uri ", "nothing: mpiexec starts ranks itself, without daemons"},
    Remedy{"--partition -p --account -A --qos --time --mem --exclusive --reservation --constraint "
           "-C ",
           "salloc or sbatch with it; mpiexec takes the machines of their job"},
    // Environment and program.
    Remedy{"--envnone --genvnone ", "mpiexec ... env -i NAME=VALUE ./program"},
    Remedy{"--envexcl --genvexcl ", "env -u NAME mpiexec ..."},
    Remedy{"--export ", "-x NAME=VALUE; all other variables are passed on"},
    Remedy{"--chdir -D ", "-wdir FOLDER"},
    Remedy{"--umask ", "umask, before mpiexec"},
    Remedy{"--preload-binary --preload-files -s ",
           "a program in the same place on all machines (of -s for input: rank 0 has it)"},
    // With which MPICH's library, in a program that has found that one, calls an mpiexec.
    Remedy{"--pmi_args ", "mpiexec -abi mpich ... ./program, as it runs on MPICH's own library"},
    // Input and output.
    Remedy{"--stdin --input -i ", "mpiexec ... < FILE; rank 0 has the standard input"},
    Remedy{"--output -o --error -e ",
           "-outfile-pattern and -errfile-pattern, -output-filename, or -l"},
    Remedy{"--prepend-pattern --ordered-output --output-proctable ",
           "-l begins each line with its rank, and lines stay whole"},
    Remedy{"--merge-stderr-to-stdout ", "mpiexec ... 2>&1"},
    Remedy{"--timestamp-output ", "mpiexec ... | ts"},
    Remedy{"--xterm ", "mpiexec -n 4 xterm -e ./program"},
    // Failures, tools.
    Remedy{"--disable-auto-cleanup --enable-recovery --continuous --with-ft --no-kill ",
           "nothing: a rank that fails ends the job"},
    Remedy{"--wait -W -t ", "-timeout SECONDS (of -t for a trace: MACADAM_TRACE=FOLDER)"},
    Remedy{"--gdb --gdba --gdb-ia --dbg --tv --tva --debug --debugger -d ",
           "mpiexec -l -n 2 gdb -q -batch -ex run -ex bt --args ./program, or gdb -p PROCESS"},
    Remedy{"--gtool --gtoolfile ", "the tool in front of the program: mpiexec -n 4 valgrind ..."},
    Remedy{"--trace ", "MACADAM_TRACE=FOLDER, then macadam trace FOLDER"},
    Remedy{"--check_mpi --check-mpi ", "MACADAM_CHECK=1"},
    Remedy{"--aps --mps --profile ", "MACADAM_REPORT=1, or MACADAM_REPORT=FILE.json"},
    Remedy{"--prot ", "MACADAM_REPORT=1, which says by what ranks have reached each other"},
    Remedy{"--info ", "macadam info"},
};

// Parameters of Open MPI and PRRTE that say what a setting or an option here does, and without
// which a job would do something else; most of the others are about parts that are not there.
constexpr std::array parameters{
    Remedy{"plm_rsh_agent plm_ssh_agent pls_rsh_agent orte_rsh_agent ", "MACADAM_SSH=PROGRAM"},
    Remedy{"btl_tcp_if_include oob_tcp_if_include prte_if_include if_include ",
           "MACADAM_NET_INTERFACE=NAME"},
    Remedy{"btl_openib_if_include ", "MACADAM_RDMA_DEVICE=NAME"},
    Remedy{"rmaps_base_mapping_policy rmaps_default_mapping_policy ", "--map-by"},
    Remedy{"rmaps_base_ranking_policy rmaps_default_ranking_policy ", "--rank-by"},
    Remedy{"hwloc_base_binding_policy hwloc_default_binding_policy ", "--bind-to"},
    Remedy{"orte_tag_output iof_base_tag_output ", "-l"},
    Remedy{"orte_default_hostfile prte_default_hostfile ", "-hostfile FILE"},
};

template <class Remedies>
std::string_view find_remedy(const Remedies& table, std::string_view name) {
  const std::string word = std::string(name) + " ";
  for (const Remedy& remedy : table)
    if (const std::size_t at = remedy.names.find(word);
        at != std::string_view::npos && (at == 0 || remedy.names[at - 1] == ' '))
      return remedy.text;
  return {};
}

} // namespace

bool is_program_behind_tune(const std::string& option, const std::string& next) {
  if (option != "-tune") return false;
  std::error_code error;
  const auto status = std::filesystem::status(next, error);
  const bool runs = std::filesystem::is_regular_file(status) && access(next.c_str(), X_OK) == 0;
  return runs || !std::filesystem::exists(status);
}

void add_foreign_options(CLI::App& app) {
  for (const Idle& option : idle) {
    CLI::Option* const added = option.values == 0
                                   ? app.add_flag(option.names)
                                   : app.add_option(option.names)
                                         ->type_size(option.values)
                                         ->option_text(option.values == 1 ? "VALUE" : "NAME VALUE");
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->description(option.why);
    added->group("Options of other launchers, which change nothing here");
  }
}

std::string_view remedy_for(std::string_view option) {
  return find_remedy(remedies, option);
}

std::string find_missed_parameter(const CLI::App& app) {
  const CLI::Option* const option = app.get_option_no_throw("--mca");
  if (option == nullptr) return {};                         // none was needed
  const std::vector<std::string> words = option->results(); // NAME VALUE ...
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    if (const std::string_view remedy = find_remedy(parameters, words[i]); !remedy.empty())
      return "parameter " + words[i] + " of Open MPI is not here; instead: " + std::string(remedy);
  return {};
}

std::string find_missed_kinds(const CLI::App& app) {
  const CLI::Option* const option = app.get_option_no_throw(memory_kinds_option);
  if (option == nullptr) return {};
  std::string missed;
  for (const std::string& list : option->results()) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
      const std::string kind = word.substr(0, word.find(':')); // without its restrictions
      if (kind != "mpi" && kind != "system") missed += (missed.empty() ? "" : ", ") + kind;
    }
  }
  if (missed.empty()) return {};
  return "memory of kind " + missed + " is not there; all ranks have the kinds mpi and system";
}

void explain_foreign_options(const CLI::App& app, const std::map<std::string, std::string>& typed) {
  for (const Idle& option : idle) {
    const std::string names = option.names;
    const std::string first = names.substr(0, names.find(','));
    const CLI::Option* const found = app.get_option_no_throw(first);
    if (found != nullptr && found->count() != 0)
      std::cerr << "mpiexec: " << typed.at(found->get_name()) << " changes nothing: " << option.why
                << '\n';
  }
}

} // namespace macadam::tools
