// SPDX-License-Identifier: BSD-3-Clause
// Programs over shared memory and RDMA in which each allocation of the library fails once, one run
// for each. What lacks memory may lose a message, refuse a call, or end the communication of its
// process, and says so to whom it concerns.
#include "torture/children.h"
#include "torture/run.h"
#include "torture/starvation.h"

#include "fmt/format.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace macadam::torture {
namespace {

constexpr std::uint64_t most_allocations = 100'000; // of a program
constexpr std::size_t most_ranks = 4;

// A case is a program's seed, and behind it which allocation fails, from 1; 0: none.
std::uint64_t seed_of(std::uint64_t number) {
  return number / most_allocations;
}
std::uint64_t refused_in(std::uint64_t number) {
  return number % most_allocations;
}

Setup starved(Setup setup) {
  setup.program.conditions.starved = 1;
  setup.program.conditions.deaths = 0;
  setup.deaths = setup.forbids = false;
  setup.breaks = true; // a process that ends its communication breaks its connections
  setup.faults.queue_pair_break = 0;
  setup.settings.rdma_connections = base::ConnectMode::on_demand; // others are made before
  return setup;
}

Setup over_rdma(std::uint64_t seed) {
  return starved(random_setup(seed));
}
Setup over_shared_memory(std::uint64_t seed) {
  return starved(random_neighbors(seed));
}

using MakeSetup = Setup (*)(std::uint64_t seed);

Finding run_case(std::uint64_t number, MakeSetup make) {
  const Setup setup = make(seed_of(number));
  const prove::Types types;
  const auto run = std::make_unique<Run>(setup, types, seed_of(number));
  Starvation::begin(refused_in(number));
  Finding found = finding_of(*run);
  found.trace = Starvation::asked();
  return found;
}

// MACADAM_SEEDS programs, MACADAM_JOBS cases at a time; or the one case MACADAM_SEED.
void expect_each_failure_to_be_told(MakeSetup make, std::uint64_t programs) {
  const auto number = [](const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  Children children([make](std::uint64_t at) { return run_case(at, make); },
                    static_cast<unsigned>(number("MACADAM_JOBS", 1)));
  const auto run = [&](std::uint64_t first, std::uint64_t last) {
    const Verdict* const bad = children.run(first, last);
    if (bad == nullptr) return true;
    ADD_FAILURE() << fmt::format("{}\nallocation {} fails, seed {}\n{}again: MACADAM_SEED={}",
                                 bad->wrong.data(), refused_in(bad->seed), seed_of(bad->seed),
                                 show(make(seed_of(bad->seed))), bad->seed);
    return false;
  };
  if (const std::uint64_t one = number("MACADAM_SEED", 0); one != 0) {
    if (run(one, one)) fmt::print("asked {} times\n", children.last().trace);
    return;
  }
  programs = number("MACADAM_SEEDS", programs);
  std::uint64_t cases = 0;
  for (std::uint64_t seed = 1; programs > 0; ++seed) {
    if (make(seed).program.ranks.size() > most_ranks) continue;
    --programs;
    const std::uint64_t first = seed * most_allocations;
    if (!run(first, first)) return;
    const std::uint64_t allocations = children.last().trace;
    ASSERT_GT(allocations, 0u);
    ASSERT_LT(allocations, most_allocations);
    if (!run(first + 1, first + allocations)) return;
    cases += allocations;
  }
  testing::Test::RecordProperty("allocations", std::to_string(cases));
}

TEST(Starved, programs_over_rdma_say_what_lacked_memory) {
  expect_each_failure_to_be_told(over_rdma, 3);
}

TEST(Starved, programs_over_shared_memory_say_what_lacked_memory) {
  expect_each_failure_to_be_told(over_shared_memory, 3);
}

} // namespace
} // namespace macadam::torture
