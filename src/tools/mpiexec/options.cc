// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/options.h"

#include "base/nearest.h"
#include "boot/launcher.h"
#include "boot/machine.h"
#include "tools/mpiexec/allocation.h"
#include "tools/mpiexec/config_file.h"
#include "tools/mpiexec/foreign_options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <strings.h>
#include <utility>
#include <vector>

namespace macadam::tools {
namespace {

constexpr const char* description =
    "Runs MPI programs, on this machine or on others by ssh.\n"
    "\n"
    "  mpiexec -n 4 ./program arguments        4 ranks of one program\n"
    "  mpiexec -n 1 ./master : -n 3 ./worker   4 ranks of two programs\n"
    "  mpiexec -host a:2,b:2 ./program         4 ranks on two machines\n"
    "\n"
    "Standard input goes to rank 0. The exit status is that of the first rank that fails, 128 "
    "plus\n"
    "the signal's number if a signal ended it, 124 after -timeout. SIGUSR1 prints what every rank\n"
    "waits for; SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2, SIGTSTP and SIGCONT are passed on.";

// Seconds, three years: clocks and counts of beats have room for so much.
constexpr double longest_time = 1e8;

constexpr const char* footer =
    "Long options may have one dash or two. -configfile FILE, alone, reads all from a file with a "
    "line\nfor each program. Options of other launchers are taken where they change nothing (-v "
    "says "
    "why);\nof the others a message says what to use. Environment:\n"
    "  MPIEXEC_TIMEOUT    what --timeout says, where it is not given\n"
    "  MACADAM_SSH        what starts a command on another machine (\"ssh -x -o BatchMode=yes\",\n"
    "                     srun in a job of Slurm)\n"
    "  MACADAM_REPORT=1   print at the end what the job did\n"
    "  MACADAM_*          settings of the library; \"macadam info\" lists them";

class Formatter : public CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: mpiexec [options] program [arguments] [: [options] program [arguments]]...\n";
  }
};

std::string check_set_name(const std::string& text) {
  if (text.empty()) return "a process set needs a name";
  if (text.size() > boot::longest_set_name)
    return "a process set's name has at most " + std::to_string(boot::longest_set_name) + " bytes";
  const bool reserved = ::strncasecmp(text.c_str(), "mpi://", 6) == 0;
  return reserved ? "\"" + text + "\": names that begin with mpi:// are MPI's own" : "";
}

std::string check_pattern(const std::string& text) {
  if (text.empty()) return "a file needs a name";
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 2))
    if (at + 1 == text.size() ||
        std::string_view("rh%").find(text[at + 1]) == std::string_view::npos)
      return "\"" + text + "\": %r stands for the rank, %h for the host, %% for a %";
  return "";
}

// Other launchers' names for a core among ours.
std::optional<Binding> binding_of(const std::string& text) {
  if (text == "none") return Binding::none;
  if (text == "core" || text == "hwthread") return Binding::core;
  if (text == "l3cache") return Binding::l3cache;
  if (text == "numa") return Binding::numa;
  if (text == "socket" || text == "package") return Binding::socket;
  return std::nullopt;
}

// How ranks are dealt to machines or numbered on them. Within a machine they are not told apart, so
// its parts are all one slot after the other.
std::optional<Order> order_of(const std::string& text) {
  if (text == "node" || text == "span") return Order::node;
  for (const char* part : {"slot", "fill", "core", "hwthread", "socket", "package", "numa",
                           "l1cache", "l2cache", "l3cache"})
    if (text == part) return Order::slot;
  return std::nullopt;
}

bool is_part_of_machine(const std::string& text) {
  return order_of(text) == Order::slot && text != "slot" && text != "fill";
}

bool is_count(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Of a count. CLI11's own check also takes numbers to other bases, 010 for 8.
auto up_to(int most) {
  return [most](const std::string& text) {
    const bool good =
        is_count(text) && text.front() != '0' && text.size() <= 9 && std::stoi(text) <= most;
    return good ? "" : "\"" + text + "\" is no decimal number from 1 to " + std::to_string(most);
  };
}

// The words of --map-by: "node", "ppr:2:node", and what Open MPI takes behind them, ":PE=2", also
// alone.
struct MapBy {
  explicit MapBy(const std::string& text) {
    std::istringstream words(text);
    std::getline(words, first, ':');
    if (first.empty() && !text.empty()) first = "slot";
    if (first == "ppr") {
      std::getline(words, count, ':');
      std::getline(words, object, ':');
    }
    std::getline(words, modifiers);
  }
  std::string first, count, object, modifiers;
};

std::string check_order(const std::string& text) {
  return order_of(text) ? "" : "\"" + text + "\" is no order of ranks; \"slot\" and \"node\" are";
}

std::string check_map_by(const std::string& text) {
  const MapBy words(text);
  if (words.first != "ppr") {
    const std::string wrong = check_order(words.first);
    return wrong.empty() ? "" : wrong + ", and ppr:COUNT:node";
  }
  const bool good = is_count(words.count) && words.count.size() <= 4 &&
                    std::stoi(words.count) > 0 && words.object == "node";
  return good ? "" : "\"" + text + "\": ranks can be counted by node only, ppr:COUNT:node";
}

// Options for the whole job stand beside those of one program, so every program's part of the
// command line is read by a parser of its own. CLI11 compares each new option with all others,
// which took longer than to start a rank: so only the first are there at once, and more when a word
// is none of those.
struct Parser {
  Parser(Options& options, Program& program)
      : app(description, "mpiexec"), options_(options), program_(program) {
    app.formatter(std::make_shared<Formatter>());
    app.footer(footer);
    app.prefix_command();
    app.set_version_flag("--version,-V", "mpiexec of Macadam " MACADAM_VERSION);
    app.add_option("-n,--np,--n,-c,--ntasks", program.ranks,
                   "How many ranks of this program (as many as there are slots; without hosts, 1)")
        ->option_text("COUNT")
        ->check(up_to(most_ranks_of_job));
  }

  // The option of a name with its dashes; null: there is none.
  const CLI::Option* find(const std::string& name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    while (option == nullptr && add_more())
      option = app.get_option_no_throw(name);
    return option;
  }

  // Adds options that are not there yet. False: all are.
  bool add_more() {
    if (stage_ == Stage::all) return false;
    if (stage_ == Stage::first)
      add_own(options_, program_);
    else
      add_foreign_options(app);
    stage_ = stage_ == Stage::first ? Stage::own : Stage::all;
    return true;
  }

  CLI::App app;
  // Options that change nothing for their value, by their first names, and why.
  std::vector<std::pair<std::string, std::string>> remarks;

 private:
  enum class Stage { first, own, all };

  void add_own(Options& options, Program& program) {
    add_environment(options, program);
    app.add_option_function<std::string>(
           "--abi", [&options](const std::string& abi) { options.is_mpich_abi = abi == "mpich"; },
           "mpich: the programs were built with MPICH, Intel MPI or another library of the same "
           "ABI, and find ours in place of it (standard)")
        ->option_text("standard|mpich")
        ->check([](const std::string& abi) {
          return abi == "standard" || abi == "mpich"
                     ? ""
                     : "\"" + abi +
                           "\" is no ABI that programs can have here; standard and mpich are";
        });
    add_machines(options, program);
    app.add_option("--wdir,--wd", program.folder, "Run this program in FOLDER")
        ->option_text("FOLDER");
    app.add_option("--pset", program.process_set,
                   "The ranks of this program are the process set NAME of MPI's sessions, together "
                   "with those of other programs of that name")
        ->option_text("NAME")
        ->check(check_set_name);
    app.add_flag(
        "-l,--label,--prepend-rank,--tag-output", options.label,
        "Begin every line of output with the rank that wrote it; lines up to 1 MiB stay whole");
    app.add_option("--timeout", options.timeout_seconds,
                   "End the job after so long, and print what every rank was waiting for")
        ->option_text("SECONDS")
        ->check(boot::check_seconds);
    app.add_option(
           "--usize", options.universe_size,
           "How many processes the job should have at most with those that it spawns, which "
           "is what MPI_UNIVERSE_SIZE tells it (the cores that mpiexec may use)")
        ->option_text("COUNT")
        ->check(up_to(most_ranks));
    add_binding(options);
    add_output_files(options);
    app.add_option_function<std::string>(
           "--path",
           [&program](const std::string& folders) {
             std::istringstream list(folders);
             for (std::string folder; std::getline(list, folder, ':');)
               program.path.push_back(folder);
           },
           "Folders, with : between them, to look for the program in before those of PATH")
        ->option_text("FOLDERS");
    app.add_flag("-v,--verbose", options.verbose, "Say which options change nothing, and why");
  }

  void add_binding(Options& options) {
    app.add_option_function<std::string>(
           "--bind-to",
           [&options](const std::string& text) { options.binding = *binding_of(text); },
           "none: ranks run on any core that mpiexec may use (default); core: rank i runs "
           "on the i-th of these cores only; l3cache, numa, socket: ranks in equal parts "
           "on the cores that share a cache, a memory, a socket. Two bound jobs on one "
           "machine would share cores while others idle, so binding is never done unasked")
        ->option_text("none|core|l3cache|numa|socket")
        ->check([](const std::string& text) {
          return binding_of(text) ? ""
                                  : "\"" + text +
                                        "\" is no part of a machine that ranks are bound to; none, "
                                        "core, l3cache, numa and socket are";
        });
    app.add_flag("--report-bindings", options.report_bindings,
                 "Print where each rank may run, before the ranks start");
  }

  void add_output_files(Options& options) {
    app.add_option("--outfile-pattern", options.output_files.out,
                   "Each rank's standard output goes to a file; %r stands for the rank, %h for the "
                   "host")
        ->option_text("PATTERN")
        ->check(check_pattern);
    app.add_option("--errfile-pattern", options.output_files.error,
                   "The same for its standard error")
        ->option_text("PATTERN")
        ->check(check_pattern);
    app.add_option_function<std::string>(
           "--output-filename",
           [&options](const std::string& name) {
             options.output_files = {name + ".%r.out", name + ".%r.err"};
           },
           "Both go to files, NAME.RANK.out and NAME.RANK.err")
        ->option_text("NAME")
        ->check(check_pattern);
  }

  void add_environment(Options& options, Program& program) {
    app.add_option_function<Variable>(
           "--env",
           [&program](const Variable& variable) { program.environment.push_back(variable); },
           "Set a variable for the ranks of this program")
        ->option_text("NAME VALUE")
        ->trigger_on_parse();
    app.add_option_function<Variable>(
           "--genv",
           [&options](const Variable& variable) { options.environment.push_back(variable); },
           "Set a variable for all ranks")
        ->option_text("NAME VALUE")
        ->trigger_on_parse();
    app.add_option_function<std::string>(
           "-x",
           [this, &options](const std::string& text) { export_variable(options, "-x", text); },
           "Set a variable for all ranks, or pass it on")
        ->option_text("NAME[=VALUE]")
        ->trigger_on_parse();
    for (const char* const option : {"--envlist", "--genvlist"})
      app.add_option_function<std::string>(
             option,
             [this, &options, option](const std::string& list) {
               std::istringstream names(list);
               for (std::string name; std::getline(names, name, ',');)
                 export_variable(options, option, name);
             },
             "Pass these variables on, which is always done")
          ->option_text("NAME,...")
          ->trigger_on_parse();
  }

  // -x NAME and -genvlist NAME pass on what ranks inherit in any case.
  void export_variable(Options& options, const std::string& option, const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos)
      options.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    else if (std::getenv(text.c_str()) == nullptr)
      std::cerr << "mpiexec: " << option.substr(option.starts_with("--") ? 1 : 0) << " " << text
                << ": there is no such variable to pass on\n";
    else
      remarks.emplace_back(option, text + " changes nothing: all variables are always passed on");
  }

  void add_machines(Options& options, Program& program) {
    app.add_option_function<std::string>(
           "-H,--host,--hosts",
           [&program](const std::string& list) { add_hosts(program.hosts, list); },
           "The machines to use, with how many ranks each (1); without it those of the job of "
           "Slurm, PBS, LSF or Grid Engine that mpiexec runs in, else this one")
        ->option_text("NAME[:SLOTS],...")
        ->trigger_on_parse();
    app.add_option_function<std::string>(
           "-f,--hostfile,--machinefile",
           [&program](const std::string& path) { add_host_file(program.hosts, path); },
           "The same from a file, with a line NAME[:SLOTS] or NAME slots=SLOTS for each")
        ->option_text("FILE")
        ->trigger_on_parse();
    app.add_option("--ppn,--perhost,--npernode,--ntasks-per-node,-N", program.per_host,
                   "How many ranks of this program are on each machine, whatever its slots")
        ->option_text("COUNT")
        ->check(up_to(most_ranks));
    app.add_option_function<std::string>(
           "--map-by", [this, &program](const std::string& text) { read_map_by(program, text); },
           "slot: fill one machine after the other (default); node: a rank for each machine in "
           "turn; ppr:COUNT:node: as --ppn")
        ->option_text("slot|node|ppr:COUNT:node")
        ->check(check_map_by)
        ->trigger_on_parse();
    app.add_option_function<std::string>(
           "--rank-by",
           [this, &program](const std::string& text) {
             program.rank_by = order_of(text);
             remark_on_part("--rank-by", text);
           },
           "How ranks are numbered: slot: those of a machine follow each other; node: a rank of "
           "each machine in turn (as they were mapped)")
        ->option_text("slot|node")
        ->check(check_order)
        ->trigger_on_parse();
    app.add_flag("--display-map", options.display_map, "Say which ranks are on which machine");
    app.add_option("--silence", options.silence_seconds,
                   "A machine that says nothing for so long is taken for gone, which ends the job "
                   "(1.75)")
        ->option_text("SECONDS")
        ->check(boot::check_seconds);
  }

  void read_map_by(Program& program, const std::string& text) {
    const MapBy words(text);
    if (words.first == "ppr") {
      program.per_host = std::stoi(words.count);
    } else {
      program.map_by = *order_of(words.first);
      remark_on_part("--map-by", words.first);
    }
    if (!words.modifiers.empty())
      remarks.emplace_back("--map-by", words.modifiers + " changes nothing: there may always be "
                                                         "more ranks than cores, and ranks run on "
                                                         "any of them unless --bind-to says "
                                                         "otherwise");
  }

  void remark_on_part(const char* option, const std::string& text) {
    if (is_part_of_machine(text))
      remarks.emplace_back(option, text + " changes nothing: ranks are dealt to machines, not to "
                                          "parts of one; --bind-to binds them to parts");
  }

  Options& options_;
  Program& program_;
  Stage stage_ = Stage::first;
};

// What an option that mpiexec does not have is called here, or what it may have been meant to be.
[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& name) {
  const bool is_long = name.size() > 2;
  const std::string two_dashes = is_long && !name.starts_with("--") ? "-" + name : name;
  if (const std::string_view remedy = remedy_for(two_dashes); !remedy.empty())
    throw CLI::ValidationError("no option " + name + " here; instead: " + std::string(remedy));
  std::vector<std::string> known;
  for (const CLI::Option* const option : app.get_options())
    for (const std::string& word : option->get_lnames())
      known.push_back("--" + word);
  const std::string near =
      base::nearest(known, two_dashes, [](const std::string& word) { return word; });
  const std::size_t most_typos = std::min<std::size_t>(2, (two_dashes.size() - 2) / 3);
  const bool alike = is_long && base::edit_distance(near, two_dashes) <= most_typos;
  throw CLI::ValidationError("unknown option " + name + (alike ? "; there is " + near : ""));
}

bool may_be_repeated(const CLI::Option& option) {
  return option.get_items_expected_max() == 0 || option.get_trigger_on_parse() ||
         option.get_multi_option_policy() != CLI::MultiOptionPolicy::Throw;
}

// MPI launchers have always taken long options with one dash, which the parser reads as a cluster
// of short ones. Gives them their second dash, up to the program's name. No clusters are taken: a
// word that is no option must not be read as a part of one. Adds to `typed` how each option was
// written, by its first name.
void add_second_dashes(Parser& parser, std::vector<std::string>& arguments,
                       std::map<std::string, std::string>& typed) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i].starts_with('-'); ++i) {
    std::string& argument = arguments[i];
    if (argument == "--") return;
    const bool counts = argument.find_first_of("nNc") == 1 && is_count(argument.substr(2)); // -n4
    const std::string name = argument.substr(0, counts ? 2 : argument.find('='));
    const std::string two_dashes = name.starts_with("--") ? name : "-" + name;
    const bool has_value = name.size() < argument.size();
    const CLI::Option* option = name.size() > 2 ? parser.find(two_dashes) : nullptr;
    if (option)
      argument.insert(0, two_dashes.size() - name.size(), '-');
    else
      option = name.size() == 2 ? parser.find(name) : nullptr;
    if (!option) refuse_unknown(parser.app, name);
    if (const auto earlier = typed.find(option->get_name());
        earlier != typed.end() && !may_be_repeated(*option))
      throw CLI::ValidationError(
          name + (earlier->second == name
                      ? " is given twice"
                      : " is given, and " + earlier->second + ", which means the same"));
    typed.insert_or_assign(option->get_name(), name);
    if (!has_value && i + 1 < arguments.size() && is_program_behind_tune(name, arguments[i + 1])) {
      argument += "=yes";
      continue;
    }
    if (!has_value) i += static_cast<std::size_t>(option->get_items_expected_min());
  }
}

// What is wrong, with the option as it was typed and not by the first of its names.
std::string explain(const CLI::App& app, const CLI::Error& error,
                    const std::map<std::string, std::string>& typed) {
  const std::string text = error.what();
  const std::size_t colon = text.find(": ");
  const auto name = typed.find(text.substr(0, colon));
  if (colon == std::string::npos || name == typed.end()) return text;
  const CLI::Option* const option = app.get_option(name->first);
  const bool lacks_value = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  return name->second + (lacks_value ? " needs " + option->get_option_text() : text.substr(colon));
}

[[noreturn]] void leave(Parser& parser, const CLI::Error& error,
                        const std::map<std::string, std::string>& typed) {
  if (error.get_exit_code() == 0) { // --help, --version
    while (parser.add_more()) {
    }
    std::exit(parser.app.exit(error));
  }
  std::cerr << "mpiexec: " << explain(parser.app, error, typed)
            << "\nRun mpiexec --help for the options.\n";
  std::exit(2);
}

// Leaves the process if one job cannot have so many.
int check_ranks(std::int64_t ranks) {
  if (ranks <= most_ranks_of_job) return static_cast<int>(ranks);
  std::cerr << "mpiexec: " << ranks << " ranks are more than the " << most_ranks_of_job
            << " that one job can have\n";
  std::exit(2);
}

// How many ranks a program has that does not say it.
int default_ranks(const Program& program) {
  if (program.hosts.empty()) return std::max(1, program.per_host);
  std::int64_t ranks = 0;
  for (const Host& host : program.hosts)
    ranks += program.per_host != 0 ? program.per_host : host.slots;
  return check_ranks(ranks);
}

// The batch system's job that mpiexec runs in. Throws std::runtime_error.
const Allocation& allocation() {
  static const Allocation found = find_allocation();
  return found;
}

// The batch system's, if all other machines of the programs are its; empty: ssh.
std::vector<std::string> choose_starter(const std::vector<Program>& programs) try {
  std::vector<std::string> starter;
  for (const Program& program : programs)
    for (const Host& host : program.hosts) {
      if (host.name == boot::host_name()) continue;
      const auto& its = allocation().hosts;
      if (std::ranges::find(its, host.name, &Host::name) == its.end()) return {};
      starter = allocation().starter;
    }
  return starter;
} catch (const std::runtime_error&) { // it was not needed to name the machines
  return {};
}

// `before` is the program before it on the command line; null: it is the first.
Program read_program(Options& options, std::vector<std::string> arguments, const Program* before) {
  Program program;
  Parser parser(options, program);
  std::map<std::string, std::string> typed;
  try {
    add_second_dashes(parser, arguments, typed);
    std::reverse(arguments.begin(), arguments.end()); // the order that parse() wants
    parser.app.parse(arguments);
    program.command = parser.app.remaining();
    if (!program.command.empty() && program.command.front() == "--")
      program.command.erase(program.command.begin());
    if (program.command.empty()) throw CLI::ValidationError("no program to run was given");
    if (const std::string missed = find_missed_parameter(parser.app); !missed.empty())
      throw CLI::ValidationError(missed);
    if (const std::string missed = find_missed_kinds(parser.app); !missed.empty())
      std::cerr << "mpiexec: " << missed << '\n';
    for (const auto* variables : {&program.environment, &options.environment})
      for (const Variable& variable : *variables)
        if (variable.first.empty() || variable.first.find('=') != std::string::npos)
          throw CLI::ValidationError("\"" + variable.first + "\" is no name of a variable");
    if (options.verbose) {
      explain_foreign_options(parser.app, typed);
      for (const auto& [option, remark] : parser.remarks)
        std::cerr << "mpiexec: " << typed.at(option) << ' ' << remark << '\n';
    }
    if (before != nullptr) {
      if (program.hosts.empty()) program.hosts = before->hosts;
      if (program.per_host == 0) program.per_host = before->per_host;
      if (!typed.contains("--map-by")) program.map_by = before->map_by;
      if (!program.rank_by) program.rank_by = before->rank_by;
    }
    if (before == nullptr && program.hosts.empty()) program.hosts = allocation().hosts;
    if (program.ranks == 0) program.ranks = default_ranks(program);
  } catch (const CLI::Error& error) {
    leave(parser, error, typed);
  }
  return program;
}

} // namespace

std::vector<int> counts_of(const std::vector<Program>& programs) {
  std::vector<int> counts;
  for (const Program& program : programs)
    counts.push_back(program.ranks);
  return counts;
}

int Options::ranks() const {
  const std::vector<int> counts = counts_of(programs);
  return std::accumulate(counts.begin(), counts.end(), 0);
}

std::vector<boot::NamedRanks> Options::process_sets() const {
  std::vector<boot::NamedRanks> sets;
  std::uint32_t first = 0;
  for (const Program& program : programs) {
    const auto ranks = static_cast<std::uint32_t>(program.ranks);
    if (!program.process_set.empty()) sets.push_back({program.process_set, first, ranks});
    first += ranks;
  }
  return sets;
}

namespace {

// The folder of libmpi.so.12 (src/mpich), installed or in the build tree.
std::string mpich_folder() {
  const auto prefix = std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
  const auto installed = prefix / MACADAM_LIBDIR / "mpich";
  return std::filesystem::exists(installed) ? installed : prefix / "lib/mpich";
}

// It comes first where ranks look for libraries.
void find_mpich_abi(Options& options) {
  const std::string variable = "LD_LIBRARY_PATH", folder = mpich_folder();
  const char* const inherited = std::getenv(variable.c_str());
  const bool is_set = inherited != nullptr && *inherited != '\0';
  options.environment.emplace(options.environment.begin(), variable, is_set ? inherited : "");
  const auto put_first = [&](std::vector<Variable>& variables) {
    for (auto& [name, value] : variables)
      if (name == variable) value = value.empty() ? folder : folder + ":" + value;
  };
  put_first(options.environment);
  for (Program& program : options.programs)
    put_first(program.environment);
}

std::vector<std::string> arguments_of(int argc, char** argv) try {
  return expand_config_files({argv + 1, argv + argc});
} catch (const std::runtime_error& error) {
  std::cerr << "mpiexec: " << error.what() << "\nRun mpiexec --help for the options.\n";
  std::exit(2);
}

} // namespace

Options read_options(int argc, char** argv) {
  Options options;
  const std::vector<std::string> arguments = arguments_of(argc, argv);
  for (auto first = arguments.begin(), end = arguments.end();; ++first) {
    const auto last = std::find(first, end, ":");
    const Program* const before = options.programs.empty() ? nullptr : &options.programs.back();
    options.programs.push_back(read_program(options, {first, last}, before));
    check_ranks(options.ranks());
    first = last;
    if (last == end) break;
  }
  options.starter = choose_starter(options.programs);
  if (options.is_mpich_abi) find_mpich_abi(options);
  if (options.timeout_seconds == 0) options.timeout_seconds = boot::timeout_of_environment();
  for (double* const seconds : {&options.timeout_seconds, &options.silence_seconds})
    *seconds = std::min(*seconds, longest_time);
  return options;
}

} // namespace macadam::tools
