// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "sim/patterns/study.h"
#include "sim/tool/presets.h"
#include "sim/tool/programs.h"
#include "sim/world.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/personality.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace macadam::sim;
using namespace std::chrono_literals;

struct Command {
  WorldOptions world;
  std::string preset = "ndr";
  std::string change; // of the preset
  std::string faults;
  std::string measure; // files of compute times
  std::string repeat;
  std::size_t stack_kb = 256;
  int universe_size = 0; // 0: nobody has said
  bool quiet = false;
  bool json = false;
  bool list_presets = false;
  bool list_patterns = false;
  std::vector<std::string> program;
};

constexpr std::string_view pattern_prefix = "pattern:";

bool is_pattern(const Command& command) {
  return command.program.front().starts_with(pattern_prefix);
}

// Runs what the command names in `world`.
Outcome run(World& world, Programs& programs, const Command& command) {
  if (is_pattern(command)) {
    const std::string name = command.program.front().substr(pattern_prefix.size());
    const Study study =
        run_pattern(world, find_pattern(name), std::span(command.program).subspan(1));
    if (study.outcome.end == Outcome::End::finished)
      std::fputs((command.json ? as_json(study) : as_table(study)).c_str(), stdout);
    return study.outcome;
  }
  return world.run(programs.first(command.program));
}

// A line now and then, the more seldom the longer it takes.
void show_progress(World& world) {
  using Clock = std::chrono::steady_clock;
  world.on_progress = [&world, began = Clock::now(), pause = Clock::duration(2s),
                       next = Clock::now() + 2s]() mutable {
    const auto now = Clock::now();
    if (now < next) return;
    const std::chrono::duration<double> took = now - began;
    fmt::print(stderr, "macadam simulate: {:.6f} s of virtual time after {:.0f} s, {} events\n",
               seconds(world.scheduler().now()), took.count(), world.scheduler().events());
    pause = std::min<Clock::duration>(2 * pause, 1min);
    next = now + pause;
  };
}

int simulate(const Command& command) {
  WorldOptions options = command.world;
  options.model = load_preset(command.preset);
  change_model(options.model, command.change);
  options.faults = read_faults(command.faults);
  options.stack_bytes = command.stack_kb << 10;

  std::optional<ComputeTimes> times;
  if (!command.measure.empty()) times.emplace(options.ranks);
  if (!command.repeat.empty()) times.emplace(command.repeat, options.ranks);
  if (times) options.compute_times = &*times;

  Programs programs;
  if (!is_pattern(command)) {
    options.find_program = [&](const auto& asked) { return programs.find(asked); };
    // As on one machine: what a job starts there is there too.
    options.one_node = options.ranks_per_node > 1 && options.ranks <= options.ranks_per_node;
  }
  if (command.universe_size > 0) options.room = std::max(command.universe_size, options.ranks);

  World world(options);
  const auto began = std::chrono::steady_clock::now();
  if (!command.quiet && ::isatty(STDERR_FILENO) != 0) show_progress(world);
  const Outcome outcome = run(world, programs, command);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::fflush(nullptr);
  print_reports(world);
  if (!command.measure.empty()) times->write(command.measure);
  if (times && times->missing() > 0)
    fmt::print(stderr,
               "macadam simulate: {} has no times for {} computations, which took none; was it "
               "measured with this program and its arguments?\n",
               command.repeat, times->missing());
  if (outcome.end != Outcome::End::finished)
    fmt::print(stderr, "macadam simulate: {}{}\n",
               outcome.end == Outcome::End::hung ? "nothing moves any more\n" : "", outcome.text);
  const int spawned = world.size() - options.ranks;
  if (!command.quiet)
    fmt::print(stderr,
               "macadam simulate: {} ranks{} on {}, seed {}: {:.6f} s of virtual time in {:.2f} s, "
               "{} events, trace {:016x}\n",
               options.ranks, spawned > 0 ? fmt::format(" and {} spawned", spawned) : "",
               options.model.name, options.seed, seconds(outcome.time), took.count(),
               world.scheduler().events(), outcome.trace);
  return outcome.exit_code;
}

// Says what it was, if a rank has run into the end of its stack; then lets it end the program.
void on_segmentation_fault(int signal, siginfo_t* info, void*) {
  const Rank* rank = Rank::current();
  if (rank != nullptr && rank->overflowed(info->si_addr)) {
    std::array<char, 128> text; // nothing that allocates, in a handler
    const int length = std::snprintf(text.data(), text.size(),
                                     "macadam simulate: rank %d has used up its stack; give more "
                                     "with --stack KIB\n",
                                     rank->number());
    static_cast<void>(!::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(length)));
  }
  ::signal(signal, SIG_DFL);
}

void watch_stacks() {
  static std::array<std::byte, 64 << 10> memory; // the handler cannot run on the stack that is full
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  struct sigaction action {};
  action.sa_sigaction = on_segmentation_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaltstack(&stack, nullptr);
  ::sigaction(SIGSEGV, &action, nullptr);
}

// The same command is to give the same run: where memory is decides whether a program that takes
// memory again gets what it had before, which is registered. Where the kernel does not let us
// (containers), that stays random.
void place_memory_alike(char** argv) {
  const int now = ::personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  ::execv("/proc/self/exe", argv);
}

std::string describe_patterns() {
  std::string page;
  for (const Pattern& pattern : patterns())
    page += fmt::format("pattern:{:<12}{}\n", pattern.name, pattern.text);
  return page;
}

// Whether a word is an option that nobody knows, and not one of the program's.
bool stands_before(char** argv, const std::string& word, const std::vector<std::string>& program) {
  if (!word.starts_with('-')) return false;
  while (*argv != nullptr && *argv != word && (program.empty() || *argv != program.front()))
    ++argv;
  return *argv != nullptr && *argv == word;
}

// A command line that is wrong.
int refuse(const std::string& why) {
  fmt::print(stderr, "macadam simulate: {}\nRun macadam simulate --help for more.\n", why);
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  place_memory_alike(argv);
  Command command;
  CLI::App app("Runs an MPI program on a simulated RDMA network, in virtual time, in one process",
               "macadam simulate");
  app.add_option("-n,--ranks", command.world.ranks, "Number of ranks")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--ranks-per-node", command.world.ranks_per_node,
                 "Ranks of one machine, which share its memory and its ports")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--ports", command.world.ports,
                 "Ports of each machine, which its ranks take in turn")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_flag("--cyclic", command.world.dealt,
               "Ranks are dealt to machines one by one in turn, not machine by machine");
  app.add_option("--usize", command.universe_size,
                 "MPI_UNIVERSE_SIZE: as many processes may run at a time, with those that are "
                 "spawned")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("-p,--preset", command.preset, "Hardware: a preset's name, or a JSON file")
      ->capture_default_str();
  app.add_option("--change", command.change,
                 "Other values than the preset's, for example copy_mb_per_s=9000,latency_ns=1200");
  app.add_option("-s,--seed", command.world.seed, "All that is random follows from it")
      ->capture_default_str();
  app.add_option("-f,--faults", command.faults, "For example datagram_loss=0.1,jitter=2,shuffle");
  CLI::Option* const measure = app.add_option(
      "--measure", command.measure,
      "What the program computes takes the processor time that it took; written to this file");
  app.add_option("--repeat", command.repeat,
                 "... takes what this file of an earlier run says: the same times in every run")
      ->excludes(measure);
  app.add_option("--stack", command.stack_kb, "KiB of stack for each rank")->capture_default_str();
  app.add_option("--quiet-seconds", command.world.quiet_s,
                 "Virtual time without a message until it counts as a hang")
      ->capture_default_str();
  app.add_flag("-q,--quiet", command.quiet, "Print nothing of our own at the end");
  app.add_flag("--presets", command.list_presets, "List the presets");
  app.add_flag("--patterns", command.list_patterns, "List the built-in programs");
  app.add_flag("--json", command.json, "Results of a pattern as JSON");
  app.add_option("program", command.program,
                 "A shared object built with `mpicc -shared -fPIC`, or pattern:NAME; then its "
                 "arguments");
  app.positionals_at_end()->prefix_command();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : refuse(error.what());
  }
  const std::vector<std::string> others = app.remaining();
  if (!others.empty() && stands_before(argv, others.front(), command.program))
    return refuse(fmt::format("it takes no \"{}\"", others.front()));
  command.program.insert(command.program.end(), others.begin(), others.end());
  watch_stacks();
  try {
    if (command.list_presets) std::fputs(describe_presets().c_str(), stdout);
    if (command.list_patterns) std::fputs(describe_patterns().c_str(), stdout);
    if (command.list_presets || command.list_patterns) return 0;
    if (command.program.empty()) {
      std::fputs("macadam simulate: no program given; see `macadam simulate --help`\n", stderr);
      return 1;
    }
    return simulate(command);
  } catch (const macadam::base::Error& error) {
    fmt::print(stderr, "macadam simulate: {}\n", error.text);
    return 1;
  }
}
