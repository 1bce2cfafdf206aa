// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/program.h"
#include "torture/network.h"

#include <cstdint>
#include <string>

namespace macadam::torture {

// A random program and the network it runs on: everything follows from the seed.
struct Setup : Network {
  prove::Program program;
  bool notifications = true; // the transport's puts may tell their target that they are there
  int ranks_per_node = 1;    // those use shared memory, all others RDMA
  int cores = 1 << 20;       // of a node
  bool deaths = false;       // a rank is killed
  bool forbids = false;      // the kernel refuses a rank's copies from some time on
};

// All over RDMA; with shared memory, alone or beside it.
Setup random_setup(std::uint64_t seed);
Setup random_neighbors(std::uint64_t seed);

// What differs from the defaults, then the program.
std::string show(const Setup& setup);

} // namespace macadam::torture
