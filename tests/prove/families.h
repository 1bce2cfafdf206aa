// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/program.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::prove {

// What a rank may do: sequences of `least` to `most` words. Words are separated by ';', a word is
// steps separated by ','; "{4 12 20}" in a word stands for each of its alternatives.
struct Sequences {
  std::size_t least, most;
  std::string words;
};

// All programs of a kind, under each of some conditions (words as above).
struct Family {
  const char* name;
  const char* about; // one line for users
  std::string conditions;
  std::vector<Sequences> ranks;
  bool quick; // short enough for every test run
};

std::span<const Family> families();
// Throws std::invalid_argument with the names there are.
const Family& family(std::string_view name);

// Gives every program of the family, short ones first, until `visit` returns false. Of programs
// that differ only by the names of tags or of ranks that play the same part, one is given.
void enumerate(const Family& family, const std::function<bool(const Program&)>& visit);

} // namespace macadam::prove
