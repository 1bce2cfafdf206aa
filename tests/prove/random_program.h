// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/execution.h"

#include <cstdint>
#include <string>

namespace macadam::prove {

// A program of 2 to 64 ranks that follows from the seed: every call, size, type and condition that
// a Program can have.
Program random_program(std::uint64_t seed);

// Runs it in an order that follows from the seed too. Says what was wrong, empty if nothing.
std::string run_seed(std::uint64_t seed, const Types& types);

} // namespace macadam::prove
