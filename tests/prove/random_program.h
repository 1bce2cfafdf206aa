// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/execution.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace macadam::prove {

class Random final : public Decider {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  unsigned choose(unsigned of) override { return static_cast<unsigned>(engine_() % of); }
  int pick(int of) { return static_cast<int>(choose(static_cast<unsigned>(of))); }
  bool chance(int percent) { return pick(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

// 2 to 64, mostly few.
int random_ranks(Random& random);
// Some two hundred steps with messages of these sizes, multiples of 4, the longest last.
void add_random_steps(Program& program, Random& random, int ranks,
                      std::span<const std::size_t> sizes);
// Repeats some nonblocking sends, one fast after the other.
void add_bursts(Program& program, Random& random);

// A program of 2 to 64 ranks that follows from the seed: every call, size, type and condition that
// a Program can have.
Program random_program(std::uint64_t seed);

// Runs it in an order that follows from the seed too. Says what was wrong, empty if nothing.
std::string run_seed(std::uint64_t seed, const Types& types);

} // namespace macadam::prove
