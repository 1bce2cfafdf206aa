// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "boot/packet.h"
#include "tools/mpiexec/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace macadam::tools {

// What a proxy says of its machine when it has started.
struct ProxyHello {
  std::string host;
  std::string machine; // different for each machine, even if two have one name
  std::uint32_t cores = 0;
};

// What a proxy is to do.
struct ProxyOrder {
  std::vector<boot::Node> nodes;       // the machines of the job,
  std::uint32_t own = 0;               // of which this is one;
  std::vector<std::uint32_t> machines; // by rank
  std::vector<int> counts;             // ranks of each program, on all machines
  std::vector<boot::NamedRanks> sets;
  boot::Secret secret{};
  std::string mpiexec; // its name (boot::part_of())
  Options options;     // `ranks` of a program are those here; of all others what a proxy needs
  std::string folder;
  std::vector<std::string> environment; // of the ranks, "NAME=VALUE"
};

void write(boot::PacketWriter& packet, const std::vector<Variable>& variables);
std::vector<Variable> read_variables(boot::PacketReader& packet);

ProxyHello own_hello();

void write(boot::PacketWriter& packet, const ProxyHello& hello);
void write(boot::PacketWriter& packet, const ProxyOrder& order);
// Throw base::Error if the packet ends too early.
ProxyHello read_hello(boot::PacketReader& packet);
ProxyOrder read_order(boot::PacketReader& packet);

} // namespace macadam::tools
