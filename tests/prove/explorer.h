// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/execution.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace macadam::prove {

// The choices of a run, one character each ("0" to "9", "a" to "z"); past its end all is 0.
using Schedule = std::string;

struct Failure {
  Program program;
  Schedule schedule;
  std::string what;
};
// What went wrong, the steps that led there, and the command that repeats it.
std::string show(const Failure& failure, const Types& types);

// What was looked at.
struct Tally {
  std::uint64_t programs = 0;
  std::uint64_t runs = 0;    // of a program, from its beginning
  std::uint64_t states = 0;  // in which more than one thing could happen
  double interleavings = 0;  // that the programs have, which is what runs without keys would be
  std::uint64_t longest = 0; // events in a run

  Tally& operator+=(const Tally& other);
};

// Visits every state that a program can reach. Engines cannot be copied, so each run starts from
// the beginning and follows the last one to the last choice that has an alternative left; a run
// ends early at a state that was visited before (its key tells).
class Explorer {
 public:
  // Without keys every interleaving is run to its end.
  explicit Explorer(bool with_keys = true) : with_keys_(with_keys) {}

  // Nothing if no run violates the oracle.
  std::optional<Failure> explore(const Program& program);
  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] const Types& types() const { return types_; }

 private:
  struct Choice {
    unsigned taken = 0, of = 0;
    std::optional<StateKey> key; // of the state that it was made in
    double interleavings = 0;    // of the alternatives taken so far
  };
  struct KeyHash {
    std::size_t operator()(const StateKey& key) const { return key.first; }
  };
  // Decides as the choices say, and adds to them where they end.
  class Guide;

  std::optional<double> follow(const Program& program, std::string& wrong);
  bool next_choice(double interleavings);

  const bool with_keys_;
  Types types_;
  Tally tally_;
  std::vector<Choice> choices_;
  // Interleavings from each visited state on; negative while its alternatives are being tried.
  std::unordered_map<StateKey, double, KeyHash> visited_;
};

// One run as a schedule says.
struct Replay {
  std::vector<std::string> events;
  std::string wrong; // empty: nothing
};
Replay replay(const Program& program, const Schedule& schedule, const Types& types);

} // namespace macadam::prove
