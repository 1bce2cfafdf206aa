// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "prove/program.h"
#include "sim/model.h"

#include <cstdint>
#include <string>

namespace macadam::torture {

// A random program and the network it runs on: everything follows from the seed.
struct Setup {
  prove::Program program;
  base::Settings settings;
  sim::Model model;
  sim::Faults faults;
  bool notices = true; // the transport's puts may tell their target that they are there
  bool breaks = false; // connections may fail, and operations with them
};

Setup random_setup(std::uint64_t seed);

// What differs from the defaults, then the program.
std::string show(const Setup& setup);

} // namespace macadam::torture
