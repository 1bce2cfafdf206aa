// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "prove/random_program.h"
#include "sim/model.h"

#include <initializer_list>
#include <string>

namespace macadam::torture {

using prove::Random;

template <class Value>
Value one_of(Random& random, std::initializer_list<Value> values) {
  return values.begin()[random.choose(static_cast<unsigned>(values.size()))];
}

// A network that misbehaves.
struct Network {
  base::Settings settings;
  sim::Model model;
  sim::Faults faults;
  bool breaks = false; // connections may fail, and operations with them
  bool rails = false;  // each process has two ports, and splits what is longer than a few pages
};

// Small numbers, so that every limit is met soon.
void set_limits(Random& random, int ranks, base::Settings& settings);
// True if registrations are few for a program's memory.
bool set_device(Random& random, Network& network);
// After the limits.
void set_faults(Random& random, int ranks, Network& network);

// Devices that place writes late, so that what was sent later comes first. After the settings.
void set_order(Random& random, Network& network);

void set_rails(Random& random, Network& network);

// What differs from the defaults.
std::string show(const Network& network);

} // namespace macadam::torture
