// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "sim/scheduler.h"

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace macadam::torture {

// What became of one seed.
struct Finding {
  std::string wrong; // empty: nothing
  std::uint64_t trace = 0;
  double virtual_s = 0;
  std::uint64_t events = 0, messages = 0;
};

// Of a program on simulated devices, from its beginning to its end.
template <class Run>
Finding finding_of(Run& run) {
  Finding found;
  found.wrong = run.execute();
  found.trace = run.scheduler().trace_hash();
  found.virtual_s = sim::seconds(run.scheduler().now());
  found.events = run.scheduler().events();
  found.messages = run.fabric().counters.messages;
  return found;
}

// The same, in memory that parent and child share.
struct Verdict {
  std::uint64_t seed;
  std::uint64_t trace;
  double virtual_s;
  std::uint64_t events, messages;
  pid_t child;
  std::array<char, 8000> wrong;
};

// Each seed runs in a process of its own, forked from one that has allocated nothing in between:
// the same memory every time (registrations are of whole pages, so addresses matter), and a crash
// is the seed's and not the test's.
class Children {
 public:
  using Experiment = std::function<Finding(std::uint64_t seed)>;

  explicit Children(Experiment experiment, unsigned jobs = 1);
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();

  // Runs seeds until one is wrong; null if none is.
  const Verdict* run(std::uint64_t first, std::uint64_t last);
  // Of the seed that ended last, if one ran at a time.
  [[nodiscard]] const Verdict& last() const { return verdicts_[0]; }

 private:
  Verdict& free_place();
  void begin(Verdict& verdict, std::uint64_t seed);
  Verdict& wait();

  const Experiment experiment_;
  const unsigned jobs_;
  Verdict* verdicts_;
};

// The tests of all experiments. By the environment: MACADAM_SEEDS=10000 runs as many, MACADAM_JOBS
// at a time; MACADAM_SEED=7 runs one and shows it. `show` tells what a seed stands for.
void expect_nothing_wrong(const Children::Experiment& experiment, std::uint64_t seeds,
                          const std::function<std::string(std::uint64_t seed)>& show,
                          const char* program);
void expect_the_same_run(const Children::Experiment& experiment, std::uint64_t seeds);

} // namespace macadam::torture
