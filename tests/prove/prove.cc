// SPDX-License-Identifier: BSD-3-Clause
// `prove`: runs every interleaving of every program of some families, or repeats one run.
#include "fmt/format.h"
#include "prove/explorer.h"
#include "prove/families.h"
#include "prove/random_program.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

namespace macadam::prove {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void report(const char* name, const Tally& tally, double seconds) {
  fmt::print("{:12} {:>9} {:>10} {:>10} {:>10.3g} {:>9.3g} {:>7} {:>7.1f}\n", name, tally.programs,
             tally.states, tally.runs, tally.interleavings,
             tally.interleavings / static_cast<double>(tally.runs), tally.longest, seconds);
  std::fflush(stdout); // a family takes a while
}

// Shares the programs of a family out to `jobs` threads. Nothing if all is well.
std::optional<Failure> prove(const Family& family, unsigned jobs, Tally& sum) {
  std::mutex lock;
  std::optional<Failure> failure;
  bool stop = false;
  std::vector<std::thread> threads;
  for (unsigned job = 0; job < jobs; ++job) {
    threads.emplace_back([&, job] {
      Explorer explorer;
      std::size_t number = 0;
      enumerate(family, [&](const Program& program) {
        if (number++ % jobs != job) return true;
        auto found = explorer.explore(program);
        const std::lock_guard guard(lock);
        if (found && !stop) failure = std::move(found);
        stop = stop || failure.has_value();
        return !stop;
      });
      const std::lock_guard guard(lock);
      sum += explorer.tally();
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return failure;
}

int prove_families(const std::vector<const Family*>& chosen, unsigned jobs) {
  const auto start = std::chrono::steady_clock::now();
  fmt::print("{:12} {:>9} {:>10} {:>10} {:>10} {:>9} {:>7} {:>7}\n", "family", "programs", "states",
             "runs", "orders", "saved", "longest", "seconds");
  Tally all;
  for (const Family* family : chosen) {
    const auto begin = std::chrono::steady_clock::now();
    Tally tally;
    const auto failure = prove(*family, jobs, tally);
    report(family->name, tally, seconds_since(begin));
    if (failure) {
      fmt::print("{}", show(*failure, Types()));
      return 1;
    }
    all += tally;
  }
  report("all", all, seconds_since(start));
  fmt::print(
      "orders: interleavings of these programs, each of them covered; saved: orders for each "
      "run that was made;\nlongest: most events in one run\n");
  return 0;
}

int repeat(const Program& program, const std::string& schedule) {
  const Replay run = replay(program, schedule, Types());
  int number = 0;
  for (const std::string& event : run.events)
    fmt::print("{:3}. {}\n", ++number, event);
  fmt::print("{}\n", run.wrong.empty() ? "all is well" : run.wrong);
  return run.wrong.empty() ? 0 : 1;
}

int explore(const Program& program) {
  Explorer explorer;
  const auto failure = explorer.explore(program);
  const Tally& tally = explorer.tally();
  fmt::print("{} states in {} runs stand for {:.0f} orders\n", tally.states, tally.runs,
             tally.interleavings);
  if (failure) fmt::print("{}", show(*failure, explorer.types()));
  return failure ? 1 : 0;
}

int main(int argc, char** argv) {
  CLI::App app("Runs every interleaving of small point-to-point programs on the engine, against an "
               "oracle of MPI's matching rules.");
  std::vector<std::string> names;
  std::string text, schedule;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  bool quick = false, list = false;
  app.add_option("families", names, "families of programs to run; all by default");
  app.add_flag("--quick", quick, "only the families of every test run");
  app.add_flag("--list", list, "list the families");
  app.add_option("--jobs", jobs, "threads")->check(CLI::PositiveNumber);
  auto* const program = app.add_option("--program", text, "one program instead, as text");
  std::uint64_t seed = 0;
  auto* const random = app.add_option("--seed", seed, "one random program instead, in its order");
  auto* const one = app.add_option("--schedule", schedule, "repeat one run of it")->needs(program);
  CLI11_PARSE(app, argc, argv);

  if (list) {
    for (const Family& known : families())
      fmt::print("{:12} {}\n", known.name, known.about);
    return 0;
  }
  if (!random->empty()) {
    const std::string wrong = run_seed(seed, Types());
    fmt::print("{}\n{}\n", show(random_program(seed)), wrong.empty() ? "all is well" : wrong);
    return wrong.empty() ? 0 : 1;
  }
  if (!one->empty()) return repeat(parse(text), schedule);
  if (!program->empty()) return explore(parse(text));
  std::vector<const Family*> chosen;
  for (const std::string& name : names)
    chosen.push_back(&family(name));
  if (names.empty()) {
    for (const Family& known : families()) {
      if (known.quick || !quick) chosen.push_back(&known);
    }
  }
  return prove_families(chosen, jobs);
}

} // namespace
} // namespace macadam::prove

int main(int argc, char** argv) {
  try {
    return macadam::prove::main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "prove: {}\n", error.what());
    return 2;
  }
}
