// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/port_choice.h"

#include <string>

// What the system knows of adapters and of this process, beside verbs: where they are in the
// machine, and which subnets the addresses are in. Read from the kernel's files, as topology
// libraries do too. `root` is where sys is mounted; another one for tests.
namespace macadam::net::rdma::ibverbs {

// Completes the facts of a port that was opened.
void read_surroundings(PortFacts& port, const std::string& root = "");

// Of this process; `threads` are those that it may run on.
Seat read_seat(unsigned local_rank, Threads threads, const std::string& root = "");

} // namespace macadam::net::rdma::ibverbs
